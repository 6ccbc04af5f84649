//! Drives hikite's upstream client through the client scenarios of the public conformance suite. The table lists the
//! calls that a scenario needs; `hikite-upstream` does all protocol work.
//!
//!     MCP_CONFORMANCE_SCENARIO=tools_call client-driver http://localhost:1234/mcp

use std::{process::ExitCode, sync::Arc, time::Duration};

use hikite_core::{
    caller::{Caller, ClientCapabilities, Session, SessionId},
    error::ErrorKind,
    json::{Object, Raw},
    limits::Limits,
    listing::{ListCache, Listing},
    owner_secrets::Signer,
    secret::Secret,
    source::{
        Backchannel, BoxFuture, CallContext, CallOrigin, InputRequest, InputRequestKind, Invocation, Source,
        SourceMethod, SourceState,
    },
};
use hikite_egress::AllowList;
use hikite_testkit::credential_store::{ClientSigningKey, MemoryCredentialStore};
use hikite_upstream::{
    ClientMetadataDocument, ConfiguredClient, ConnectionSharing, Environment, GrantType, OAuthSettings, ProcessLimits,
    Spawner, Upstream, UpstreamDefinition, UpstreamTransport,
};
use serde_json::{Map, Value, json};

/// Client metadata URL that the suite expects.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Redirect URI. Nothing listens there: the driver plays the browser.
const REDIRECT: &str = "http://localhost:3000/connect/callback";
/// Maximum number of logins for one call.
const LOGINS: usize = 5;

/// Time for another call to run while a question is open.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Calls that a scenario needs.
enum ScenarioPlan {
    /// Only the lists, which are always read.
    Lists,
    /// These tools in order, without arguments.
    Tools(&'static [&'static str]),
    /// Addition of two numbers.
    Sum,
    /// Every tool, resource and prompt offered.
    Everything,
    /// The calls in `MCP_CONFORMANCE_CONTEXT`.
    FromContext,
    /// One tool while another waits for an answer, then the rest.
    Interleaved,
    /// The schema of one tool as the argument of another.
    Schema,
    /// A tool of a server that requires a login.
    Login,
}

const PLANS: [(&str, ScenarioPlan); 11] = [
    ("initialize", ScenarioPlan::Lists),
    ("tools_call", ScenarioPlan::Sum),
    ("elicitation-sep1034-client-defaults", ScenarioPlan::Tools(&["test_client_elicitation_defaults"])),
    ("sse-retry", ScenarioPlan::Tools(&["test_reconnection"])),
    ("request-metadata", ScenarioPlan::Lists),
    ("sep-2322-client-request-state", ScenarioPlan::Interleaved),
    ("http-standard-headers", ScenarioPlan::Everything),
    ("http-custom-headers", ScenarioPlan::FromContext),
    ("http-invalid-tool-headers", ScenarioPlan::Everything),
    ("json-schema-ref-no-deref", ScenarioPlan::Lists),
    ("json-schema-2020-12-preservation", ScenarioPlan::Schema),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let known = PLANS.iter().find(|(name, _)| *name == scenario).map(|(_, plan)| plan);
    let Some(plan) = known.or_else(|| scenario.starts_with("auth/").then_some(&ScenarioPlan::Login)) else {
        return print_error(&format!("no plan for the scenario `{scenario}`"));
    };
    let Some(url) = std::env::args().next_back() else {
        return print_error("the last argument is the URL of the server");
    };
    match run(plan, &url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => print_error(&reason),
    }
}

#[expect(clippy::print_stderr, reason = "a program says why it failed")]
fn print_error(reason: &str) -> ExitCode {
    eprintln!("client-driver: {reason}");
    ExitCode::FAILURE
}

async fn run(plan: &ScenarioPlan, url: &str) -> Result<(), String> {
    let limits = Arc::new(Limits::default());
    let definition = UpstreamDefinition {
        name: "suite".into(),
        transport: UpstreamTransport::Http {
            url: url.parse().map_err(|_| format!("`{url}` is no URL"))?,
            headers: http::HeaderMap::new(),
        },
        share: ConnectionSharing::Auto,
        access: Some(access()?),
        place: hikite_core::json::Object::default(),
        hash: "suite".to_owned(),
    };
    let environment = Environment {
        // The server belongs to the suite, so no process is started.
        spawner: Spawner::start("none".into(), ProcessLimits { running: 1, starting: 1 })
            .map_err(|error| error.to_string())?,
        client: hikite_egress::EgressClient::new(),
        cache: Arc::new(NoListCache),
        limits: Arc::clone(&limits),
    };
    let upstream = Upstream::start(definition, environment, Arc::new(|_| {}));
    let driver = ConformanceDriver::new(upstream, plan);
    let outcome = driver.run_plan(plan).await;
    driver.upstream.close(limits.drain).await;
    outcome
}

/// Reads the login settings that the suite provides.
fn access() -> Result<OAuthSettings, String> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |name: &str| context[name].as_str().map(ToOwned::to_owned);
    let signer = match text("private_key_pem") {
        Some(pem) => Some(Arc::new(ClientSigningKey::read(&Secret::hidden(pem))?) as Arc<dyn Signer>),
        None => None,
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let alone = scenario.starts_with("auth/client-credentials");
    Ok(OAuthSettings {
        grant: if alone { GrantType::ClientCredentials } else { GrantType::AuthorizationCode },
        client: text("client_id").map(|id| ConfiguredClient {
            id,
            secret: text("client_secret").map(Secret::hidden),
            signer,
        }),
        scopes: Vec::new(),
        issuer: text("issuer"),
        document: Some(ClientMetadataDocument { url: DOCUMENT.to_owned(), redirect: REDIRECT.to_owned() }),
        login_hint: "log in".to_owned(),
        egress: AllowList::default(),
        keep: Arc::new(MemoryCredentialStore::default()),
    })
}

/// List cache that stores nothing, so that every run reads the lists.
struct NoListCache;

impl ListCache for NoListCache {
    fn load(&self, _: &str) -> Option<Listing> {
        None
    }

    fn store(&self, _: &str, _: &Listing) {}
}

struct ConformanceDriver {
    upstream: Upstream,
    context: CallContext,
}

impl ConformanceDriver {
    fn new(upstream: Upstream, plan: &ScenarioPlan) -> Self {
        // Only requests without a session carry these headers. A client that accepts questions opens a session with a
        // server that supports both, and its requests then omit the headers.
        let declared = match plan {
            ScenarioPlan::Everything | ScenarioPlan::FromContext => json!({}),
            _ => json!({"sampling": {}, "elicitation": {}, "roots": {}}),
        };
        let declared = Raw::of(&declared);
        let session = Session {
            id: SessionId(1),
            caller: Caller::owner(),
            client_capabilities: ClientCapabilities::read(&declared.object().unwrap_or_default()),
        };
        let context = CallContext {
            session: Arc::new(session),
            back: Arc::new(AcceptingUser),
            origin: CallOrigin::default(),
            accepts_input_required: false,
            account: None,
        };
        Self { upstream, context }
    }

    async fn run_plan(&self, plan: &ScenarioPlan) -> Result<(), String> {
        self.upstream.first_listing().await;
        if let SourceState::Failing { reason, .. } = self.upstream.state() {
            return Err(reason);
        }
        match plan {
            ScenarioPlan::Lists => Ok(()),
            ScenarioPlan::Tools(names) => self.all(names).await,
            ScenarioPlan::Sum => self.tool("add_numbers", json!({"a": 5, "b": 3})).await,
            ScenarioPlan::Everything => self.call_everything().await,
            ScenarioPlan::FromContext => self.call_from_context().await,
            ScenarioPlan::Interleaved => {
                let (first, between) = tokio::join!(
                    self.tool("test_mrtr_echo_state", json!({})),
                    self.tool("test_mrtr_unrelated", json!({})),
                );
                first.and(between)?;
                self.all(&["test_mrtr_no_state", "test_mrtr_no_result_type"]).await
            }
            ScenarioPlan::Schema => {
                let schema = self.definition("json_schema_2020_12_tool")["inputSchema"].clone();
                self.tool("json_schema_echo", json!({"schema": schema})).await
            }
            ScenarioPlan::Login => Box::pin(self.log_in_and_call()).await,
        }
    }

    /// Calls with as many logins as the server demands, up to `LOGINS`.
    async fn log_in_and_call(&self) -> Result<(), String> {
        let mut refused = None;
        for _ in 0..LOGINS {
            let listed = match self.upstream.listing() {
                Some(_) => Ok(()),
                None => Box::pin(self.upstream.refresh_lists()).await,
            };
            let params = json!({"name": "test-tool", "arguments": {}});
            let invocation =
                Invocation { method: SourceMethod::CallTool, params: Raw::of(&params).object().unwrap_or_default() };
            let done = match listed {
                Ok(()) => self.upstream.call(invocation, self.context.clone()).await.map(drop),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => return Ok(()),
                Err(error) if error.kind == ErrorKind::AccountRequired => refused = Some(error.to_string()),
                Err(error) => return Err(error.to_string()),
            }
            self.log_in().await?;
        }
        Err(refused.unwrap_or_default())
    }

    /// Plays the browser and a user who agrees to everything.
    async fn log_in(&self) -> Result<(), String> {
        let begun = self.upstream.begin_login(REDIRECT).await.map_err(|error| error.to_string())?;
        let mut request = http::Request::new(http_body_util::Full::default());
        *request.uri_mut() = begun.url.parse().map_err(|_| format!("`{}` is no URL", begun.url))?;
        let answer = hikite_egress::EgressClient::new().send(request).await.map_err(|error| error.to_string())?;
        let back = answer.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
        let query = back.and_then(|back| back.strip_prefix(REDIRECT)?.strip_prefix('?'));
        let query = query.ok_or("the browser is not sent back")?;
        self.upstream.finish_login(query).await.map_err(|error| error.to_string())
    }

    async fn all(&self, names: &[&str]) -> Result<(), String> {
        for name in names {
            self.tool(name, json!({})).await?;
        }
        Ok(())
    }

    /// Calls every tool with a value for each required argument, and reads every resource and prompt.
    async fn call_everything(&self) -> Result<(), String> {
        let Some(listing) = self.upstream.listing() else {
            return Err("there are no lists".to_owned());
        };
        for tool in &listing.tools {
            let required = self.definition(&tool.name)["inputSchema"]["required"].clone();
            let names = required.as_array().into_iter().flatten().filter_map(Value::as_str);
            let arguments: Map<String, Value> = names.map(|name| (name.to_owned(), json!("x"))).collect();
            self.tool(&tool.name, arguments.into()).await?;
        }
        for resource in &listing.resources {
            self.send(SourceMethod::ReadResource, &json!({"uri": &*resource.name})).await?;
        }
        for prompt in &listing.prompts {
            self.send(SourceMethod::GetPrompt, &json!({"name": &*prompt.name})).await?;
        }
        Ok(())
    }

    async fn call_from_context(&self) -> Result<(), String> {
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
        let context: Value = serde_json::from_str(&context).map_err(|error| error.to_string())?;
        for call in context["toolCalls"].as_array().into_iter().flatten() {
            self.tool(call["name"].as_str().unwrap_or_default(), call["arguments"].clone()).await?;
        }
        Ok(())
    }

    fn definition(&self, tool: &str) -> Value {
        let listing = self.upstream.listing();
        let found = listing.as_ref().and_then(|it| it.tools.iter().find(|item| &*item.name == tool));
        found.map(|item| item.raw.value()).unwrap_or_default()
    }

    async fn tool(&self, name: &str, arguments: Value) -> Result<(), String> {
        self.send(SourceMethod::CallTool, &json!({"name": name, "arguments": arguments})).await
    }

    async fn send(&self, method: SourceMethod, params: &Value) -> Result<(), String> {
        let invocation = Invocation { method, params: Raw::of(params).object().unwrap_or_default() };
        let called = self.upstream.call(invocation, self.context.clone()).await;
        called.map(drop).map_err(|error| format!("{} {params}: {}", method.name(), error.message))
    }
}

/// A user who accepts everything and submits forms with their defaults.
struct AcceptingUser;

impl Backchannel for AcceptingUser {
    fn progress(&self, _: Object) {}

    fn log(&self, _: Raw) {}

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        Box::pin(async move {
            tokio::time::sleep(SETTLE_TIME).await;
            Ok(Raw::of(&answer(question.kind, &question.params.value())))
        })
    }
}

fn answer(kind: InputRequestKind, params: &Value) -> Value {
    match kind {
        InputRequestKind::Elicitation => {
            let fields = params["requestedSchema"]["properties"].as_object().into_iter().flatten();
            let filled: Map<String, Value> =
                fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect();
            json!({"action": "accept", "content": filled})
        }
        InputRequestKind::Sampling => {
            json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "yes"}})
        }
        InputRequestKind::Roots => json!({"roots": []}),
    }
}
