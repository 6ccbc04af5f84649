//! Source of registered tools. Each tool is a function of its own; there is nothing to start or stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::SessionId;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, Listing};
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceMethod, SourceState, ToolHandler};
use hikite_core::tool_output::wrap_value;
use hikite_core::view;

#[derive(Debug)]
pub(crate) struct RegisteredSource {
    listing: Arc<Listing>,
    tools: HashMap<Arc<str>, Arc<dyn ToolHandler>>,
}

impl RegisteredSource {
    pub(crate) fn new(module: &str, tools: impl Iterator<Item = (ListItem, Arc<dyn ToolHandler>)>) -> Self {
        let (items, tools) = tools.map(|(item, run)| (item.clone(), (item.name, run))).unzip();
        let info = Object::default().with("name", module).with("version", env!("CARGO_PKG_VERSION"));
        let capabilities = Object::default().with("tools", Raw::empty_object());
        let listing = Listing { tools: items, info, capabilities, ..Listing::default() };
        Self { listing: Arc::new(listing), tools }
    }

    async fn run(&self, mut params: Object, context: CallContext) -> Result<Raw, Error> {
        let name = params.text("name").unwrap_or_default();
        let known = self.tools.keys().map(|name| &**name);
        let tool = self.tools.get(name.as_str()).ok_or_else(|| view::unknown_tool(&name, known))?;
        let arguments = params.remove("arguments").and_then(|raw| raw.object()).unwrap_or_default();
        tool.run(arguments, context).await.map(|value| wrap_value(&value))
    }
}

impl Source for RegisteredSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        Some(Arc::clone(&self.listing))
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn kind(&self) -> &'static str {
        "registered"
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        match invocation.method {
            SourceMethod::CallTool => Box::pin(self.run(invocation.params, context)),
            method => Box::pin(std::future::ready(Err(Error::new(
                ErrorKind::MethodNotFound,
                format!("Registered tools do not support `{}`.", method.name()),
            )))),
        }
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
