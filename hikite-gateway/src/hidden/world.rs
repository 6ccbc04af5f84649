//! Test catalogs: servers, categories over them, and a gateway in front.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::about::About;
use hikite_core::caller::{Abilities, Caller, Scopes, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::category::CategoryRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{Item, ListKind, Listing};
use hikite_core::seal::Seal;
use hikite_core::selection::{Override, Selection, ToolRef};
use hikite_core::source::{BoxFuture, CallContext, Invocation, Nobody, Origin, Source, State};
use parking_lot::Mutex;

use crate::fake::raw;
use crate::gate::Throttle;
use crate::gateway::{Gateway, Rules};
use crate::probe;
use crate::project::Project;

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) servers: Vec<Server>,
    pub(super) categories: Vec<Kind>,
}

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    /// `true` if it has returned its tool list; otherwise it never will.
    pub(super) told: bool,
    pub(super) tools: Vec<Tool>,
    /// Includes resources, a template, a skill, a prompt, instructions and an extension.
    pub(super) more: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) annotations: &'static str,
    pub(super) needs: Option<&'static str>,
}

/// A category: its servers, the included names (empty for all), and a disabled one.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) servers: Vec<&'static str>,
    pub(super) includes: Vec<&'static str>,
    pub(super) disables: Option<&'static str>,
}

/// A source that answers every request with its own name and the request.
pub(super) struct Told {
    name: &'static str,
    listing: Mutex<Option<Arc<Listing>>>,
}

impl Told {
    pub(super) fn new(server: &Server) -> Arc<Self> {
        let listing = server.told.then(|| Arc::new(server.listing()));
        Arc::new(Self { name: server.name, listing: Mutex::new(listing) })
    }

    pub(super) fn tell(&self, server: &Server) {
        *self.listing.lock() = Some(Arc::new(server.listing()));
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Source for Told {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.lock().clone()
    }

    fn state(&self) -> State {
        State::Running
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

impl Server {
    pub(super) fn new(name: &'static str, tools: &[&'static str]) -> Self {
        let tools = tools.iter().map(|name| Tool { name, annotations: "{}", needs: None }).collect();
        Self { name, told: true, tools, more: true }
    }

    fn listing(&self) -> Listing {
        let item = |kind, text: String| Item::read(kind, raw(&text)).expect("named");
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
        let resource =
            |uri: String| item(ListKind::Resources, format!(r#"{{"uri":"{uri}","name":"{}"}}"#, self.name));
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
            let about = About { dependencies: vec![tool.needs?.into()], ..About::default() };
            Some((Arc::from(tool.name), Arc::new(about)))
        });
        let about: HashMap<Arc<str>, Arc<About>> = about.collect();
        ModuleRule {
            description: format!("all of {}", self.name),
            about: Arc::new(about),
            ..ModuleRule::new(self.name, source)
        }
    }
}

impl Kind {
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
            keeper: hikite_core::keeper::Keeper::File,
        })
    }
}

impl World {
    pub(super) fn open(&self) -> Arc<Gateway> {
        let sources: Vec<Arc<Told>> = self.servers.iter().map(Told::new).collect();
        self.open_with(&sources)
    }

    pub(super) fn open_with(&self, sources: &[Arc<Told>]) -> Arc<Gateway> {
        let gateway = Gateway::new(Arc::new(Limits::default()), Seal::new([7; 32]), probe::registry_aside());
        let throttle = Throttle::of(&Limits::default());
        let modules = self
            .servers
            .iter()
            .zip(sources)
            .map(|(server, source)| (server.rule(Arc::clone(source) as Arc<dyn Source>), throttle));
        gateway.apply(Rules {
            modules: modules.collect(),
            categories: self.categories.iter().map(Kind::rule).collect(),
            ..Rules::default()
        });
        gateway
    }
}

/// Makes `p` the only project, with these permissions.
pub(super) fn permit(gateway: &Gateway, permissions: &str) {
    let form = Object::default().with("permissions", raw(permissions));
    gateway.set_projects(vec![Arc::new(Project::read("p", &form).expect("a project"))]);
}

/// Returns a caller who works in a project.
pub(super) fn member(project: &str) -> Caller {
    Caller { project: Some(project.into()), ..Caller::named("alice") }
}

pub(super) fn with_scopes(scopes: Scopes) -> Caller {
    Caller { scopes, ..Caller::named("alice") }
}

pub(super) fn session(caller: &Caller, id: u64) -> Arc<Session> {
    Arc::new(Session { id: SessionId(id), caller: caller.clone(), abilities: Abilities::default() })
}

pub(super) fn context(caller: &Caller) -> CallContext {
    let session = session(caller, 1);
    CallContext {
        session,
        back: Arc::new(Nobody),
        origin: Origin::default(),
        takes_rounds: false,
        account: None,
    }
}
