//! Embeds hikite in another program, whose sources and functions become tools.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use hikite_config::Config;
use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::origin::ConfigOrigin;
use hikite_core::registration::ToolRegistration;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, NoClient, Source, ToolHandler};
use hikite_core::tool_output::ToolOutput;
use hikite_gateway::{CallOptions, Gateway, ToolFilter};
use hikite_server::App;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::instance::settings;
use crate::runtime::{Programs, Runtime};

/// Builds an embedded gateway.
#[derive(Debug)]
pub struct Builder {
    config: Config,
    program: Option<PathBuf>,
    modules: Vec<ModuleRule>,
    tools: Vec<(ToolRegistration, Arc<dyn ToolHandler>)>,
}

impl Builder {
    /// Creates a builder from a config; `Config::parse("{}", …)` is the default config.
    pub fn new(config: Config) -> Self {
        Self { config, program: None, modules: Vec::new(), tools: Vec::new() }
    }

    /// Sets the hikite binary, which guards stdio servers and runs jq programs. Required if the config names stdio
    /// servers; without it jq is unavailable.
    #[must_use]
    pub fn program(mut self, program: PathBuf) -> Self {
        self.program = Some(program);
        self
    }

    /// Adds a module.
    #[must_use]
    pub fn module(mut self, name: &str, description: &str, source: Arc<dyn Source>) -> Self {
        self.modules.push(ModuleRule {
            description: description.into(),
            origin: ConfigOrigin::Program,
            ..ModuleRule::new(name, source)
        });
        self
    }

    /// Adds one tool: its description and its implementation.
    pub fn tool(mut self, form: &Value, implementation: Arc<dyn ToolHandler>) -> Result<Self, Error> {
        self.tools.push((read(form)?, implementation));
        Ok(self)
    }

    pub async fn start(self) -> Result<Hikite> {
        let guard = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot find the path of this program")?,
        };
        let programs = Programs { guard, jq: self.program };
        let runtime = Runtime::start_with_modules(&self.config, programs, self.modules).await?;
        for (registration, implementation) in self.tools {
            runtime.gateway.admin().tools.register_embedded(registration, implementation).await?;
        }
        Ok(Hikite { config: self.config, runtime, stopping: CancellationToken::new() })
    }
}

/// A running embedded gateway.
#[derive(Debug)]
pub struct Hikite {
    config: Config,
    runtime: Arc<Runtime>,
    stopping: CancellationToken,
}

impl Hikite {
    /// Registers a tool: its description and its implementation.
    pub async fn register(&self, form: &Value, implementation: Arc<dyn ToolHandler>) -> Result<(), Error> {
        self.gateway().admin().tools.register_embedded(read(form)?, implementation).await
    }

    /// Registers a tool that sends HTTP requests. The registration is stored and survives a restart.
    pub async fn register_http(&self, form: &Value) -> Result<Value, Error> {
        let form = Raw::of(form).object().ok_or_else(no_object)?;
        Ok(self.gateway().admin().tools.register(&form).await?.value())
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Error> {
        self.gateway().admin().tools.unregister(name).await
    }

    pub async fn enable(&self, name: &str) -> Result<(), Error> {
        self.gateway().admin().tools.switch(name, true).await.map(|_| ())
    }

    pub async fn disable(&self, name: &str) -> Result<(), Error> {
        self.gateway().admin().tools.switch(name, false).await.map(|_| ())
    }

    pub async fn list(&self, filter: &ToolFilter) -> Vec<Value> {
        let found = self.gateway().discovery().tools_page(&Caller::owner(), filter, 0, usize::MAX).await;
        // The owner is never refused.
        found.unwrap_or_default().items.iter().map(Raw::value).collect()
    }

    pub async fn get(&self, name: &str) -> Result<Value, Error> {
        Ok(self.gateway().discovery().tool(&Caller::owner(), name).await?.value())
    }

    pub async fn version(&self, name: &str) -> Result<String, Error> {
        Ok(self.get(name).await?["version"].as_str().unwrap_or_default().to_owned())
    }

    pub async fn search(&self, query: &str, limit: usize) -> Vec<Value> {
        let everything = ToolFilter::default();
        let who = (&Caller::owner(), &CallOrigin::default());
        let found = self.gateway().discovery().find_tools(who, query, &everything, limit).await;
        // The owner is never refused.
        found.unwrap_or_default().items.iter().map(Raw::value).collect()
    }

    /// Calls a tool, with the checks and limits of every other call.
    pub async fn execute(&self, name: &str, parameters: &Value, options: CallOptions) -> Result<ToolOutput, Error> {
        let session = Session {
            id: SessionId(0),
            caller: self.gateway().people().owner(),
            client_capabilities: ClientCapabilities::default(),
        };
        let context = CallContext {
            session: Arc::new(session),
            back: Arc::new(NoClient),
            origin: CallOrigin::default(),
            accepts_input_required: false,
            account: None,
        };
        self.gateway().run_tool(name, Some(Raw::of(parameters)), options, context).await
    }

    /// Serves MCP and REST until `stop` is called.
    pub async fn serve(&self, listener: TcpListener) -> Result<()> {
        let runtime = &self.runtime;
        let (gateway, limits) = (Arc::clone(&runtime.gateway), Arc::clone(&runtime.limits));
        let app = App::new(gateway, limits, settings(&self.config)?, self.stopping.child_token());
        hikite_server::serve(listener, app).await;
        Ok(())
    }

    /// Stops the server and everything that was started for it.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.runtime.stop().await;
    }

    fn gateway(&self) -> &Gateway {
        &self.runtime.gateway
    }
}

fn read(form: &Value) -> Result<ToolRegistration, Error> {
    ToolRegistration::read(&Raw::of(form).object().ok_or_else(no_object)?)
}

fn no_object() -> Error {
    Error::new(ErrorKind::Validation, "The tool definition must be an object.")
}

/// Creates a tool from a function of arguments to a value. Its error message is shown to the caller.
pub fn function<Run, Running>(run: Run) -> Arc<dyn ToolHandler>
where
    Run: Fn(Value) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<Value, String>> + Send + 'static,
{
    Arc::new(Function(run))
}

struct Function<Run>(Run);

impl<Run> fmt::Debug for Function<Run> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

impl<Run, Running> ToolHandler for Function<Run>
where
    Run: Fn(Value) -> Running + Send + Sync + 'static,
    Running: Future<Output = Result<Value, String>> + Send + 'static,
{
    fn run(&self, arguments: Object, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let running = (self.0)(arguments.raw().value());
        Box::pin(async move {
            let value = running.await.map_err(|why| Error::new(ErrorKind::ToolExecution, why))?;
            Ok(Raw::of(&value))
        })
    }
}
