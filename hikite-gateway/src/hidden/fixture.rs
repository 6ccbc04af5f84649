//! Test catalogs: servers, categories over them, and a gateway in front.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::call_policy::ToolMetadata;
use hikite_core::caller::{Caller, ClientCapabilities, Scopes, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::category::CategoryRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, Invocation, NoClient, Source, SourceState};
use hikite_core::tool_selection::{Override, Selection, ToolRef};
use parking_lot::Mutex;

use crate::admission::Throttle;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::probe;
use hikite_identity::Project;

#[derive(Clone, Debug, Default)]
pub(super) struct TestCatalog {
    pub(super) servers: Vec<TestServer>,
    pub(super) categories: Vec<TestCategory>,
}

#[derive(Clone, Debug)]
pub(super) struct TestServer {
    pub(super) name: &'static str,
    /// `true` if it has returned its tool list; otherwise it never will.
    pub(super) told: bool,
    pub(super) tools: Vec<TestTool>,
    /// Includes resources, a template, a skill, a prompt, instructions and an extension.
    pub(super) more: bool,
}

#[derive(Clone, Debug)]
pub(super) struct TestTool {
    pub(super) name: &'static str,
    pub(super) annotations: &'static str,
    pub(super) needs: Option<&'static str>,
}

/// A category: its servers, the included names (empty for all), and a disabled one.
#[derive(Clone, Debug)]
pub(super) struct TestCategory {
    pub(super) name: &'static str,
    pub(super) servers: Vec<&'static str>,
    pub(super) includes: Vec<&'static str>,
    pub(super) disables: Option<&'static str>,
}

/// A source that answers every request with its own name and the request.
pub(super) struct EchoSource {
    name: &'static str,
    listing: Mutex<Option<Arc<Listing>>>,
}

impl EchoSource {
    pub(super) fn new(server: &TestServer) -> Arc<Self> {
        let listing = server.told.then(|| Arc::new(server.listing()));
        Arc::new(Self { name: server.name, listing: Mutex::new(listing) })
    }

    pub(super) fn tell(&self, server: &TestServer) {
        *self.listing.lock() = Some(Arc::new(server.listing()));
    }
}

impl fmt::Debug for EchoSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Source for EchoSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.lock().clone()
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn call(&self, invocation: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let answer = Object::default()
            .with("resultType", "task")
            .with("taskId", "own")
            .with("server", self.name)
            .with("method", invocation.method.name())
            .with("params", invocation.params);
        Box::pin(std::future::ready(Ok(answer.raw())))
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl TestServer {
    pub(super) fn new(name: &'static str, tools: &[&'static str]) -> Self {
        let tools = tools.iter().map(|name| TestTool { name, annotations: "{}", needs: None }).collect();
        Self { name, told: true, tools, more: true }
    }

    fn listing(&self) -> Listing {
        let item = |kind, text: String| ListItem::read(kind, raw(&text)).expect("named");
        let tools = self.tools.iter().map(|tool| {
            let text = format!(
                r#"{{"name":"{}","description":"of {}","annotations":{}}}"#,
                tool.name, self.name, tool.annotations
            );
            item(ListKind::Tools, text)
        });
        let told = Listing {
            tools: tools.collect(),
            capabilities: raw(r#"{"tools":{}}"#).object().expect("an object"),
            info: Object::default().with("version", "1"),
            ..Listing::default()
        };
        if !self.more {
            return told;
        }
        let resource = |uri: String| item(ListKind::Resources, format!(r#"{{"uri":"{uri}","name":"{}"}}"#, self.name));
        let template = format!(r#"{{"uriTemplate":"t:{}/{{id}}","name":"t"}}"#, self.name);
        let skill = format!(r#"{{"uri":"skill://{}/SKILL.md"}}"#, self.name);
        let extensions = format!(
            r#"{{"tools":{{}},"resources":{{}},"prompts":{{}},"extensions":{{"io.modelcontextprotocol/skills":{{}},"of/{}":{{}}}}}}"#,
            self.name
        );
        Listing {
            resources: vec![resource("x:all".into()), resource(format!("x:{}", self.name))],
            templates: vec![item(ListKind::Templates, template)],
            skills: vec![item(ListKind::Skills, skill)],
            prompts: vec![
                item(ListKind::Prompts, r#"{"name":"ask"}"#.into()),
                item(ListKind::Prompts, format!(r#"{{"name":"ask_{}"}}"#, self.name)),
            ],
            instructions: Some(format!("how to use {}", self.name)),
            capabilities: raw(&extensions).object().expect("an object"),
            ..told
        }
    }

    pub(super) fn rule(&self, source: Arc<dyn Source>) -> ModuleRule {
        let about = self.tools.iter().filter_map(|tool| {
            let about = ToolMetadata { dependencies: vec![tool.needs?.into()], ..ToolMetadata::default() };
            Some((Arc::from(tool.name), Arc::new(about)))
        });
        let about: HashMap<Arc<str>, Arc<ToolMetadata>> = about.collect();
        ModuleRule {
            description: format!("all of {}", self.name),
            about: Arc::new(about),
            ..ModuleRule::new(self.name, source)
        }
    }
}

impl TestCategory {
    fn rule(&self) -> Arc<CategoryRule> {
        let written = |name: &str| ToolRef::parse(name, &self.servers);
        let off = |name: &str| (written(name), Override { enabled: false, ..Override::default() });
        let selection = Selection {
            include_names: self.includes.iter().map(|name| written(name)).collect(),
            overrides: self.disables.into_iter().map(off).collect(),
            ..Selection::default()
        };
        Arc::new(CategoryRule {
            name: self.name.into(),
            description: format!("all about {}", self.name),
            servers: self.servers.iter().map(|server| Arc::from(*server)).collect(),
            selection,
            skill: None,
            origin: hikite_core::origin::ConfigOrigin::File,
        })
    }
}

impl TestCatalog {
    pub(super) fn open(&self) -> Arc<Gateway> {
        let sources: Vec<Arc<EchoSource>> = self.servers.iter().map(EchoSource::new).collect();
        self.open_with(&sources)
    }

    pub(super) fn open_with(&self, sources: &[Arc<EchoSource>]) -> Arc<Gateway> {
        let gateway =
            GatewayBuilder::new(Arc::new(Limits::default()), HmacSigner::new([7; 32]), probe::registry_detached())
                .build();
        let throttle = Throttle::of(&Limits::default());
        let modules = self
            .servers
            .iter()
            .zip(sources)
            .map(|(server, source)| (server.rule(Arc::clone(source) as Arc<dyn Source>), throttle));
        gateway.apply(GatewayRules {
            modules: modules.collect(),
            categories: self.categories.iter().map(TestCategory::rule).collect(),
            ..GatewayRules::default()
        });
        gateway
    }
}

/// Makes `p` the only project, with these permissions.
pub(super) fn permit(gateway: &Gateway, permissions: &str) {
    let form = Object::default().with("permissions", raw(permissions));
    gateway.catalogs().set_projects(vec![Arc::new(Project::read("p", &form).expect("a project"))]);
}

/// Returns a caller who works in a project.
pub(super) fn member(project: &str) -> Caller {
    Caller { project: Some(project.into()), ..Caller::named("alice") }
}

pub(super) fn with_scopes(scopes: Scopes) -> Caller {
    Caller { scopes, ..Caller::named("alice") }
}

pub(super) fn session(caller: &Caller, id: u64) -> Arc<Session> {
    Arc::new(Session { id: SessionId(id), caller: caller.clone(), client_capabilities: ClientCapabilities::default() })
}

pub(super) fn context(caller: &Caller) -> CallContext {
    let session = session(caller, 1);
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}
