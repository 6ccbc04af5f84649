//! Tests of services against a fixture server.

mod hostile;
mod page;
mod recorded;
mod run;
mod site;
mod trouble;

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::credential::{AuthScheme, Credential, CredentialProvider};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::secret::Secret;
use hikite_core::source::{
    Backchannel, BoxFuture, CallContext, CallOrigin, InputRequest, Invocation, Source, SourceMethod,
};
use hikite_core::tool_output::ToolOutput;

use hikite_testkit::api::MockApi;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Service, ServiceSettings};
use crate::file::TextLanguage;

const TOY: &str = include_str!("tests/toy.yaml");

/// Accounts shared by all callers: the first is used until it is refused.
#[derive(Debug)]
pub(crate) struct TestAccounts(Mutex<Vec<Arc<Credential>>>);

impl CredentialProvider for TestAccounts {
    fn knows(&self, _: &str) -> bool {
        !self.0.lock().is_empty()
    }

    fn credential<'a>(
        &'a self,
        _: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        let first = self.0.lock().first().cloned();
        Box::pin(std::future::ready(Ok(first)))
    }

    fn renewed<'a>(
        &'a self,
        _: &'a str,
        refused: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        let mut all = self.0.lock();
        all.retain(|credential| **credential != *refused);
        Box::pin(std::future::ready(Ok(all.first().cloned())))
    }
}

pub(super) fn bearer(token: &str, api: Option<String>) -> Credential {
    Credential {
        account: "work".into(),
        scheme: AuthScheme::Bearer,
        secret: Secret::hidden(token),
        details: BTreeMap::new(),
        api,
    }
}

pub(crate) fn settings_with(accounts: Vec<Credential>, language: TextLanguage) -> ServiceSettings {
    ServiceSettings {
        client: hikite_egress::EgressClient::new(),
        credential_provider: Arc::new(TestAccounts(Mutex::new(accounts.into_iter().map(Arc::new).collect()))),
        limits: Arc::new(Limits { answer_bytes: 1 << 20, ..Limits::default() }),
        language,
    }
}

pub(crate) fn settings() -> ServiceSettings {
    settings_with(vec![bearer("test-token", None)], TextLanguage::English)
}

/// Returns the test service with this server as its API.
fn toy(api: &MockApi) -> Service {
    toy_with(vec![bearer("first-token", Some(api.url("")))])
}

fn toy_with(accounts: Vec<Credential>) -> Service {
    Service::read(TOY, &settings_with(accounts, TextLanguage::English)).expect("a service")
}

/// A client that records progress.
#[derive(Debug, Default)]
struct ProgressRecorder(Mutex<Vec<Value>>);

impl Backchannel for ProgressRecorder {
    fn progress(&self, params: Object) {
        self.0.lock().push(params.raw().value());
    }

    fn log(&self, _: Raw) {}

    fn ask(&self, _: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        Box::pin(async { Err(Raw::null()) })
    }
}

fn context(back: Arc<dyn Backchannel>) -> CallContext {
    let session =
        Session { id: SessionId(0), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
    CallContext {
        session: Arc::new(session),
        back,
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}

async fn ask(service: &Service, method: SourceMethod, params: Value) -> Result<Raw, Error> {
    let params = Raw::from(params).object().expect("an object");
    service.call(Invocation { method, params }, context(Arc::new(ProgressRecorder::default()))).await
}

async fn call_raw(service: &Service, tool: &str, arguments: Value) -> Result<Raw, Error> {
    ask(service, SourceMethod::CallTool, json!({ "name": tool, "arguments": arguments })).await
}

/// Returns the value of a tool's result.
async fn call(service: &Service, tool: &str, arguments: Value) -> Result<Value, Error> {
    call_raw(service, tool, arguments).await.map(|result| ToolOutput::read(&result).value.value())
}

/// Returns the shaped result.
async fn compact(service: &Service, tool: &str, arguments: Value) -> Value {
    let result = call_raw(service, tool, arguments.clone()).await.expect("an answer");
    service.shape(tool, Some(&Raw::from(arguments)), &result).unwrap_or_default()
}
