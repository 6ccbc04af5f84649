//! Property test: random catalogs under random permissions, each next to the same catalog without the hidden parts.
//! Every request must return the same bytes after the same time in both.

use std::sync::Arc;

use hikite_core::annotation;
use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::listing::ListKind;
use hikite_core::permission::{AccountPermissions, Permissions};
use hikite_core::plan::OnError;
use hikite_core::risk::Risk;
use hikite_core::source::CallOrigin;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{TestCatalog, TestCategory, TestServer, TestTool, context, member, permit};
use crate::command::Batch;
use crate::command::Command;
use crate::discovery::ListPage;
use crate::discovery::ToolFilter;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::surface::{Surface, Surfaces};

const SERVERS: [&str; 4] = ["git", "hub", "k8s", "files"];
const TOOLS: [&str; 6] = ["get", "get_all", "delete", "delete_all", "status", "git__status"];
const KINDS: [&str; 2] = ["work", "play"];
const ANNOTATIONS: [&str; 4] =
    ["{}", r#"{"readOnlyHint":true}"#, r#"{"destructiveHint":false}"#, r#"{"destructiveHint":true}"#];
/// Names in tool requirements and categories: of any server, of one, and of none.
const WRITTEN: [&str; 6] = ["get", "delete", "git:status", "hub:delete_all", "k8s:get", "nowhere"];

fn tool() -> impl Strategy<Value = TestTool> {
    let needs = option::weighted(0.2, select(&WRITTEN[..]));
    (select(&TOOLS[..]), select(&ANNOTATIONS[..]), needs).prop_map(|(name, annotations, needs)| TestTool {
        name,
        annotations,
        needs,
    })
}

fn server(name: &'static str) -> impl Strategy<Value = TestServer> {
    (prop::bool::weighted(0.8), vec(tool(), 0..5), any::<bool>()).prop_map(move |(told, mut tools, more)| {
        tools.sort_by_key(|tool| tool.name);
        tools.dedup_by_key(|tool| tool.name);
        TestServer { name, told, tools, more }
    })
}

fn kind(name: &'static str) -> impl Strategy<Value = TestCategory> {
    let servers = prop::sample::subsequence(SERVERS.to_vec(), 1..=3);
    (servers, vec(select(&WRITTEN[..]), 0..3), option::of(select(&WRITTEN[..])))
        .prop_map(move |(servers, includes, disables)| TestCategory { name, servers, includes, disables })
}

fn world() -> impl Strategy<Value = TestCatalog> {
    let servers = SERVERS.map(|name| option::weighted(0.8, server(name)));
    let categories = KINDS.map(|name| option::of(kind(name)));
    (servers, categories).prop_map(|(servers, categories)| TestCatalog {
        servers: servers.into_iter().flatten().collect(),
        categories: categories.into_iter().flatten().collect(),
    })
}

fn entry() -> impl Strategy<Value = String> {
    let server = || select(&SERVERS[..]);
    prop_oneof![
        server().prop_map(|server| format!(r#""{server}""#)),
        (server(), select(&TOOLS[..])).prop_map(|(server, tool)| format!(r#""{server}:{tool}""#)),
        (server(), select(&["read", "write"][..]))
            .prop_map(|(server, risk)| format!(r#"{{"module":"{server}","risk":"{risk}"}}"#)),
        select(
            &[
                r#""*:get*""#,
                r#""*:delete*""#,
                r#""g*:status""#,
                r#""/_all$/""#,
                r#""risk:read""#,
                r#""risk:destructive""#,
                r#"{"pattern":"/status/","risk":"read"}"#,
            ][..]
        )
        .prop_map(str::to_owned),
    ]
}

fn permissions() -> impl Strategy<Value = String> {
    (option::weighted(0.7, vec(entry(), 0..4)), vec(entry(), 0..3)).prop_map(|(allow, deny)| {
        let allow = allow.map_or("null".to_owned(), |allow| format!("[{}]", allow.join(",")));
        format!(r#"{{"allow":{allow},"deny":[{}]}}"#, deny.join(","))
    })
}

/// Removes everything that these permissions hide.
fn without_hidden(world: &TestCatalog, permissions: &Permissions) -> TestCatalog {
    let servers = world.servers.iter().filter_map(|server| {
        let mut server = server.clone();
        if !server.told {
            return permissions.may_reach(server.name).then_some(server);
        }
        server.tools.retain(|tool| {
            let definition = Object::default().with("annotations", raw(tool.annotations)).raw();
            let risk = Risk::of(&annotation::from_definition(&definition));
            permissions.allows(&ToolKey::new(server.name, tool.name), risk)
        });
        server.more &= permissions.allows_module(server.name);
        (!server.tools.is_empty() || permissions.allows_module(server.name)).then_some(server)
    });
    TestCatalog { servers: servers.collect(), categories: world.categories.clone() }
}

/// Returns every way to name a tool, and some names of no tool.
fn names() -> Vec<String> {
    let bare = TOOLS.iter().map(|tool| (*tool).to_owned());
    let keys = SERVERS.iter().flat_map(|server| TOOLS.iter().map(move |tool| format!("{server}:{tool}")));
    let shown = SERVERS.iter().flat_map(|server| TOOLS.iter().map(move |tool| format!("{server}__{tool}")));
    let wrong = ["gett", "del", "statsu", "git:gett", "none:get", "nowhere", "mcp__git__get"].map(str::to_owned);
    bare.chain(keys).chain(shown).chain(wrong).collect()
}

/// Formats an answer without the time at which a tool was first seen.
fn told(answer: impl std::fmt::Debug) -> String {
    const SINCE: &str = "registeredAt";
    let text = format!("{answer:?}");
    let mut parts = text.split(SINCE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + SINCE + part.trim_start_matches(|c: char| !matches!(c, '}' | ',')))
}

/// Makes every kind of request and returns the answers with their durations.
async fn answers(gateway: &Gateway, caller: &Caller) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    let mut since = Instant::now();
    let mut note = |question: String, answer: String| {
        let took = since.elapsed();
        since = Instant::now();
        answers.push((question, format!("{answer} after {took:?}")));
    };
    let view = gateway.catalogs().view_of(caller);
    note("extensions".into(), told(view.extensions()));
    note(
        "how many".into(),
        told((view.modules().iter().map(|module| module.tools.len()).sum::<usize>(), view.modules().len())),
    );
    let (categories, direct) = (Surfaces::of([Surface::Categories]), Surfaces::of([Surface::Direct]));
    let modules = Surfaces::of([Surface::Modules]);
    let both = Surfaces::of([Surface::Modules, Surface::Search]);
    for surfaces in [categories, direct, modules, both, Surfaces::of(Surface::ALL)] {
        for kind in ListKind::ALL {
            let list = gateway.discovery().list(caller, surfaces, kind, ListPage::default()).await;
            note(format!("{surfaces:?} {kind:?}"), told(list));
        }
        note(format!("{surfaces:?} instructions"), told(gateway.discovery().instructions(caller, surfaces)));
    }
    for name in names() {
        let params = Object::default().with("name", name.as_str());
        let answer = gateway.call_tool(direct, params, context(caller)).await;
        note(format!("call {name}"), told(answer));
        note(format!("GET {name}"), told(gateway.discovery().tool(caller, &name).await));
    }
    for kind in KINDS.into_iter().chain(["wrok"]) {
        for names in [Raw::null(), Raw::of(&names())] {
            let arguments = Object::default().with("category", kind).with("toolNames", names);
            let params = Object::default().with("name", "get-category-tools").with("arguments", arguments);
            let answer = gateway.call_tool(categories, params, context(caller)).await;
            note(format!("describe {kind} of {SERVERS:?}"), told(answer));
        }
        for name in names() {
            let arguments =
                Object::default().with("category", kind).with("name", name.as_str()).with("args", Raw::empty_object());
            let params = Object::default().with("name", "call-category-tool").with("arguments", arguments);
            let answer = gateway.call_tool(categories, params, context(caller)).await;
            note(format!("call {kind}/{name}"), told(answer));
        }
    }
    in_modules(gateway, caller, &mut note).await;
    batches(gateway, caller, &mut note).await;
    rest(gateway, caller, &mut note).await;
    beside_tools(gateway, caller, &mut note).await;
    answers
}

/// Describes every module in each level of detail, and calls every possible tool.
async fn in_modules(gateway: &Gateway, caller: &Caller, note: &mut impl FnMut(String, String)) {
    let surfaces = Surfaces::of([Surface::Modules]);
    let ask = async |name: &str, arguments: Value| {
        let params = Object::default().with("name", name).with("arguments", Raw::of(&arguments));
        told(gateway.call_tool(surfaces, params, context(caller)).await)
    };
    for detail in ["names", "signatures", "schemas"] {
        for module in SERVERS.into_iter().chain(["gti"]) {
            let arguments = json!({ "module": module, "detail": detail });
            note(format!("open {arguments}"), ask("get_module_schema", arguments).await);
        }
    }
    for tools in [vec![], names()] {
        let arguments = json!({ "modules": SERVERS, "tools": tools, "refresh": true });
        note(format!("open {arguments}"), ask("get_module_schema", arguments).await);
    }
    for module in SERVERS.into_iter().chain(["gti"]) {
        for tool in TOOLS.into_iter().chain(["gett"]) {
            let arguments = json!({ "module": module, "tool": tool });
            note(format!("call {arguments}"), ask("call", arguments).await);
        }
        for arguments in [
            json!({ "uri": format!("x:{module}") }),
            json!({ "uri": format!("t:{module}/1") }),
            json!({ "module": module, "prompt": "ask" }),
            json!({ "module": module, "prompt": "aks" }),
            json!({ "prompt": format!("{module}__ask") }),
        ] {
            note(format!("call {arguments}"), ask("call", arguments).await);
        }
    }
}

/// Runs and dry-runs one task per possible tool, alone and all together.
async fn batches(gateway: &Gateway, caller: &Caller, note: &mut impl FnMut(String, String)) {
    let task = |server: &str, tool: &str| json!({ "id": "t", "module": server, "tool": tool });
    let tools = || TOOLS.into_iter().chain(["gett"]);
    let alone = SERVERS.into_iter().chain(["gti"]).flat_map(|server| tools().map(move |tool| task(server, tool)));
    let mut all: Vec<Value> = alone.clone().collect();
    for (number, task) in all.iter_mut().enumerate() {
        task["id"] = format!("t{number}").into();
    }
    for tasks in alone.map(|task| json!([task])).chain([Value::from(all)]) {
        for dry_run in [true, false] {
            let commands = Raw::of(&tasks);
            let params = Object::default();
            let batch = Batch { commands, dry_run, concurrency: None, on_error: OnError::Skip, params };
            let answer = gateway.dispatch(Command::Batch(batch), context(caller)).await;
            note(format!("batch {tasks} {dry_run} of {SERVERS:?}"), told(answer));
        }
    }
}

async fn rest(gateway: &Gateway, caller: &Caller, note: &mut impl FnMut(String, String)) {
    note("modules".into(), told(gateway.admin().modules.module_objects(caller).await));
    note("categories".into(), told(gateway.admin().modules.category_objects(caller).await));
    let all = [None].into_iter().chain(SERVERS.map(Some));
    for (module, category) in all.map(|module| (module, None)).chain(KINDS.map(|kind| (None, Some(kind)))) {
        let filter = ToolFilter {
            module: module.map(str::to_owned),
            category: category.map(str::to_owned),
            ..ToolFilter::default()
        };
        let page = gateway.discovery().tools_page(caller, &filter, 0, 3).await;
        note(format!("page of {module:?} {category:?}"), told(page));
        let found =
            gateway.discovery().find_tools((caller, &CallOrigin::default()), "delete all of git", &filter, 5).await;
        note(format!("search in {module:?} {category:?}"), told(found));
    }
}

async fn beside_tools(gateway: &Gateway, caller: &Caller, note: &mut impl FnMut(String, String)) {
    let of_servers = |form: &dyn Fn(&str) -> String| SERVERS.map(form).to_vec();
    let uris = [
        vec!["x:all".to_owned(), "x:none".into(), "skill://other/SKILL.md".into()],
        of_servers(&|server| format!("x:{server}")),
        of_servers(&|server| format!("t:{server}/1")),
        of_servers(&|server| format!("skill://{server}/more.md")),
    ];
    for uri in uris.concat() {
        let params = Object::default().with("uri", uri.as_str());
        let reference = Object::default().with("type", "ref/resource").with("uri", uri.as_str());
        let commands = [
            Command::Read { params: params.clone() },
            Command::Subscribe { params: params.clone() },
            Command::Skill { params: params.clone() },
            Command::Directory { params },
            Command::Complete { params: Object::default().with("ref", reference) },
        ];
        for command in commands {
            let question = format!("{command:?}");
            note(question, told(gateway.dispatch(command, context(caller)).await));
        }
    }
    let prompts = [
        vec!["ask".to_owned(), "aks".into()],
        of_servers(&|server| format!("ask_{server}")),
        of_servers(&|server| format!("{server}__ask")),
    ];
    for name in prompts.concat() {
        let reference = Object::default().with("type", "ref/prompt").with("name", name.as_str());
        let commands = [
            Command::Prompt { params: Object::default().with("name", name.as_str()) },
            Command::Complete { params: Object::default().with("ref", reference) },
        ];
        for command in commands {
            let question = format!("{command:?}");
            note(question, told(gateway.dispatch(command, context(caller)).await));
        }
    }
}

/// Returns `true` if the answer names a server, other than as the declared requirement of a tool.
fn tells_of(answer: &str, server: &str) -> bool {
    let needed = WRITTEN.iter().filter(|written| written.contains(':'));
    let answer = needed.fold(answer.to_owned(), |answer, written| answer.replace(written, ""));
    let telling = [format!("{server}:"), format!("of {server}"), format!("use {server}"), format!("\"{server}\"")];
    telling.iter().any(|words| answer.contains(words))
}

/// Builds the gateway and makes all requests under a paused clock. Alice has permissions of her own.
fn ask(world: &TestCatalog, (permissions, mask): (&str, &str), caller: &Caller) -> Vec<(String, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let gateway = world.open();
        permit(&gateway, permissions);
        let mask = Arc::new(Permissions::read(&raw(mask)).expect("permissions"));
        gateway.catalogs().set_masks([("alice".into(), mask)].into());
        answers(&gateway, caller).await
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_hidden_cannot_be_told_from_what_is_absent(world in world(), form in permissions()) {
        let permissions = Permissions::read(&raw(&form)).expect("permissions");
        let less = without_hidden(&world, &permissions);
        let hidden = ask(&world, (&form, "{}"), &member("p"));
        let absent = ask(&less, (&form, "{}"), &member("p"));
        for (hidden, absent) in hidden.iter().zip(&absent) {
            prop_assert_eq!(hidden, absent);
        }
        let names = |world: &TestCatalog| world.servers.iter().map(|server| server.name).collect::<Vec<_>>();
        for name in names(&world).into_iter().filter(|name| !names(&less).contains(name)) {
            for (question, answer) in hidden.iter().filter(|(question, _)| !question.contains(name)) {
                prop_assert!(!tells_of(answer, name), "{question} tells of {name}: {answer}");
            }
        }
        // Without categories, whose rules may name hidden servers, it equals even the owner's answer in the reduced
        // catalog.
        if world.categories.is_empty() && world.servers.iter().all(|server| server.told) {
            let owned = ask(&less, ("{}", "{}"), &Caller::named("alice"));
            for (hidden, owned) in hidden.iter().zip(&owned) {
                prop_assert_eq!(hidden, owned);
            }
        }
    }

    #[test]
    fn a_mask_hides_as_a_project_does(world in world(), form in permissions(), mask in permissions()) {
        let within = ask(&world, (&form, "{}"), &member("p"));
        // In a project that allows everything, and outside projects, the user's permissions alone decide.
        for caller in [member("p"), Caller::named("alice")] {
            let masked = ask(&world, ("{}", &form), &caller);
            for (masked, within) in masked.iter().zip(&within) {
                prop_assert_eq!(masked, within);
            }
        }
        let both = [&form, &mask].map(|form| Arc::new(Permissions::read(&raw(form)).expect("permissions")));
        let less = without_hidden(&world, &Permissions::intersection(both, AccountPermissions::new()));
        let hidden = ask(&world, (&form, &mask), &member("p"));
        let absent = ask(&less, (&form, &mask), &member("p"));
        for (hidden, absent) in hidden.iter().zip(&absent) {
            prop_assert_eq!(hidden, absent);
        }
    }
}
