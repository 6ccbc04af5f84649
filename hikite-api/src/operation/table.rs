//! The table of operations, by tag.

use serde_json::{Value, json};

use super::Operation;
use super::parameter::{self, query, text};
use crate::{
    Account, AccountChanges, Accounts, AuditPage, AuditRecord, AuditVerdict, BatchAnswer, BatchRequest, CallAnswer,
    CallRequest, CatalogAnswer, CatalogRequest, Categories, Category, CategoryForm, Client, Clients, Connection,
    ConnectionLink, Consents, CreatedClient, CreatedToken, CreatedUser, Handover, Health, ImportAnswer, ImportRequest,
    Logins, Me, Menu, Module, Modules, NewAccount, NewClient, NewConnection, NewProject, NewToken, NewUser,
    OwnPassword, PermissionsAnswer, PermissionsRequest, PinApproval, PinDetail, Pins, Project, ProjectForm, Projects,
    ProviderApp, Providers, Registration, Removals, SearchAnswer, SearchRequest, Sessions, Status, Tokens, Tool,
    ToolPage, ToolTexts, Upstream, UpstreamEntry, Upstreams, User, UserForm, Users,
};

/// Name, description and operations of a tag.
type Tag = (&'static str, &'static str, fn() -> Vec<Operation>);

/// Tags, in the order of the document.
const TAGS: [Tag; 13] = [
    ("Tools", "List, search and run tools.", tools),
    ("Registry", "Register, change and remove tools; for admins.", registry),
    ("Overview", "Sources and groups of tools.", overview),
    ("Upstreams", "Remote servers configured at runtime; for admins.", upstreams),
    ("Projects", "The caller, and projects that separate callers; for admins.", projects),
    ("Tokens", "Access tokens; for admins.", tokens),
    ("Accounts", "Accounts used to call services.", accounts),
    ("Users", "Users who log in; for admins.", users),
    ("Clients", "OAuth clients of users; for admins.", clients),
    ("Pins", "Approval of tool definitions; for admins.", pins),
    ("Presence", "Sessions, consents and logins; for admins.", presence),
    ("Audit", "Records of all actions; for admins.", audit),
    ("Health", "Health of the gateway.", health),
];

pub(crate) fn tags() -> Vec<Value> {
    TAGS.iter().map(|(name, description, _)| json!({ "name": name, "description": description })).collect()
}

pub(crate) fn operations() -> Vec<Operation> {
    let tagged = |(tag, _, operations): &Tag| {
        let tag = *tag;
        operations().into_iter().map(move |operation| Operation { tag, ..operation })
    };
    TAGS.iter().flat_map(tagged).collect()
}

fn get(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("get", path, id, summary)
}

fn post(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("post", path, id, summary)
}

fn put(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("put", path, id, summary)
}

fn patch(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("patch", path, id, summary)
}

fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("delete", path, id, summary)
}

fn tools() -> Vec<Operation> {
    vec![
        get("/v1/tools", "listTools", "Lists tools, page by page.")
            .query(parameter::of_tools())
            .answers::<ToolPage>("A page of tools."),
        get("/v1/tools/{key}", "getTool", "Shows one tool.").answers::<Tool>("The tool."),
        post("/v1/tools/search", "searchTools", "Finds tools by what they do.")
            .takes::<SearchRequest>()
            .answers::<SearchAnswer>("The matching tools, best first."),
        post(
            "/catalog/search",
            "searchCatalog",
            "Searches the tools in the request: compatible with the Search API of another gateway.",
        )
        .takes::<CatalogRequest>()
        .answers::<CatalogAnswer>("The matching tools, best first."),
        post("/v1/tools/call", "callTool", "Runs a tool and returns the value of its result.")
            .takes::<CallRequest>()
            .answers::<CallAnswer>("The result of the tool.")
            .fails(&[499, 502, 503]),
        post("/v1/batch", "runBatch", "Runs several tools with dependencies, or shows the plan.")
            .takes::<BatchRequest>()
            .answers::<BatchAnswer>("The outcome of each task.")
            .fails(&[503]),
    ]
}

fn registry() -> Vec<Operation> {
    vec![
        post("/v1/tools", "registerTool", "Registers a tool that makes an HTTP request.")
            .takes::<Registration>()
            .creates::<Tool>("The new tool.")
            .fails(&[409]),
        patch("/v1/tools/{key}", "changeTool", "Overrides texts of a tool, or removes the overrides.")
            .takes::<ToolTexts>()
            .answers::<Tool>("The changed tool.")
            .fails(&[503]),
        delete("/v1/tools/{key}", "unregisterTool", "Removes a registered tool.").confirms("Removed.").fails(&[409]),
        post("/v1/tools/{key}/enable", "enableTool", "Enables a tool.")
            .answers::<Tool>("The changed tool.")
            .fails(&[409]),
        post("/v1/tools/{key}/disable", "disableTool", "Disables a tool.")
            .answers::<Tool>("The changed tool.")
            .fails(&[409]),
    ]
}

fn overview() -> Vec<Operation> {
    vec![
        get("/v1/categories", "listCategories", "Lists the categories.").answers::<Categories>("The categories."),
        get(
            "/v1/modules",
            "listModules",
            "Lists the modules, each with the tools of one source. Admins also see their state.",
        )
        .answers::<Modules>("The modules."),
        get(
            "/v1/modules/{name}",
            "getModule",
            "Shows one module. Admins also see its connection settings and its stderr.",
        )
        .answers::<Module>("The module."),
        post(
            "/v1/modules/{name}/restart",
            "restartModule",
            "Restarts a module's connections and processes; for admins.",
        )
        .answers::<Module>("The changed module.")
        .fails(&[409, 503]),
        post("/v1/modules/{name}/enable", "enableModule", "Enables a module; for admins.")
            .answers::<Module>("The changed module.")
            .fails(&[409, 503]),
        post(
            "/v1/modules/{name}/disable",
            "disableModule",
            "Disables a module and hides it from all callers; for admins.",
        )
        .answers::<Module>("The changed module.")
        .fails(&[409, 503]),
        get(
            "/v1/status",
            "getStatus",
            "Shows the state of the gateway, the tokens it saved, and what needs attention; for admins.",
        )
        .answers::<Status>("The overview.")
        .fails(&[503]),
        get(
            "/v1/categories/{name}",
            "getCategory",
            "Shows one category; admins also see the definition of a category in the store.",
        )
        .answers::<Category>("The category."),
        put("/v1/categories/{name}", "putCategory", "Creates or changes a category; for admins.")
            .takes::<CategoryForm>()
            .answers::<Category>("The changed category.")
            .creates::<Category>("Created.")
            .fails(&[409, 503]),
        delete("/v1/categories/{name}", "deleteCategory", "Removes a category from the store; for admins.")
            .confirms("Removed.")
            .fails(&[409, 503]),
    ]
}

fn upstreams() -> Vec<Operation> {
    vec![
        get("/v1/upstreams", "listUpstreams", "Lists the upstream servers of the config file and of the store, secrets masked.").answers::<Upstreams>("The upstream servers."),
        get("/v1/upstreams/{name}", "getUpstream", "Shows one upstream server, secrets masked.").answers::<Upstream>("The upstream server."),
        put("/v1/upstreams/{name}", "putUpstream", "Adds or changes a remote server. Local programs are rejected; they can only be defined in the config file.").takes::<UpstreamEntry>().answers::<Upstream>("The changed upstream server.").creates::<Upstream>("Created.").fails(&[409, 503]),
        delete("/v1/upstreams/{name}", "deleteUpstream", "Removes a server from the store.").confirms("Removed.").fails(&[409, 503]),
        post("/v1/upstreams/import", "importUpstreams", "Previews or imports the config of another client.").takes::<ImportRequest>().answers::<ImportAnswer>("The result for each entry.").fails(&[503]),
    ]
}

fn projects() -> Vec<Operation> {
    vec![
        get("/v1/me", "getMe", "Shows the caller.").answers::<Me>("The caller."),
        get("/v1/projects", "listProjects", "Lists the projects.").answers::<Projects>("All projects."),
        post("/v1/projects", "createProject", "Creates a project.").takes::<NewProject>().creates::<Project>("The new project.").fails(&[409]),
        get("/v1/projects/{name}", "getProject", "Shows one project.").answers::<Project>("The project."),
        patch("/v1/projects/{name}", "changeProject", "Replaces the given members.").takes::<ProjectForm>().answers::<Project>("The changed project.").fails(&[409]),
        delete("/v1/projects/{name}", "deleteProject", "Removes a project and its tokens.").confirms("Removed.").fails(&[409]),
        get("/v1/menu", "getMenu", "Shows the exact `tools/list` that a model gets, and its token cost; for admins.").query(vec![text("project", "The project; none by default."), query("surface", "The surfaces the client asks for, separated by commas; by default the configured ones.", &json!({"type": "string", "pattern": "^(categories|direct|modules|search)(,(categories|direct|modules|search))*$", "example": "modules,search"}))]).answers::<Menu>("The tool list."),
        post("/v1/permissions/preview", "previewPermissions", "Shows which tools given permissions would show and hide; for admins.").takes::<PermissionsRequest>().answers::<PermissionsAnswer>("The keys of the tools."),
    ]
}

fn tokens() -> Vec<Operation> {
    vec![
        get("/v1/tokens", "listTokens", "Lists the tokens, without their secrets.").answers::<Tokens>("All tokens."),
        post("/v1/tokens", "createToken", "Creates a token.")
            .takes::<NewToken>()
            .creates::<CreatedToken>("The token with its secret, which is shown only once."),
        delete("/v1/tokens/{id}", "revokeToken", "Revokes a token immediately.").confirms("Revoked."),
    ]
}

fn accounts() -> Vec<Operation> {
    vec![
        get("/v1/accounts", "listAccounts", "Lists accounts, without their secrets.")
            .query(vec![query(
                "all",
                "Accounts of all users; for admins.",
                &json!({"type": "boolean", "default": false}),
            )])
            .answers::<Accounts>("The accounts that the caller may use."),
        post("/v1/accounts", "addAccount", "Adds an account with an existing token.")
            .takes::<NewAccount>()
            .creates::<Account>("The account.")
            .fails(&[409]),
        get("/v1/accounts/{id}", "getAccount", "Shows one account.").answers::<Account>("The account."),
        patch("/v1/accounts/{id}", "changeAccount", "Changes the given members; for admins.")
            .takes::<AccountChanges>()
            .answers::<Account>("The changed account."),
        delete("/v1/accounts/{id}", "removeAccount", "Removes an account and its secrets; for admins.")
            .confirms("Removed."),
        post("/v1/accounts/{id}/verify", "verifyAccount", "Checks with the vendor that the credential is valid.")
            .answers::<Account>("The changed account."),
        post("/v1/accounts/connect", "connectAccount", "Starts connecting an account in a browser.")
            .takes::<NewConnection>()
            .creates::<ConnectionLink>("A link for the caller's browser."),
        get("/v1/accounts/connect/{id}", "getConnection", "Returns the progress of a connection.")
            .answers::<Connection>("The progress."),
        get("/v1/providers", "listProviders", "Lists the providers of accounts.")
            .answers::<Providers>("The known providers."),
        put("/v1/providers/{name}", "setProviderApp", "Sets the OAuth app of hikite; for admins.")
            .takes::<ProviderApp>()
            .confirms("Saved.")
            .fails(&[409]),
        delete("/v1/providers/{name}", "removeProviderApp", "Removes the OAuth app; for admins.").confirms("Removed."),
    ]
}

fn users() -> Vec<Operation> {
    vec![
        post(
            "/v1/me/password",
            "changeOwnPassword",
            "Changes the caller's password and ends its other logins and all grants.",
        )
        .takes::<OwnPassword>()
        .confirms("Changed."),
        get("/v1/users", "listUsers", "Lists the users who can log in.").answers::<Users>("All users."),
        post("/v1/users", "createUser", "Creates a user.")
            .takes::<NewUser>()
            .creates::<CreatedUser>("The user, with the generated password.")
            .fails(&[409]),
        get("/v1/users/{name}", "getUser", "Shows one user.").answers::<User>("The user."),
        patch("/v1/users/{name}", "changeUser", "Replaces the given members.")
            .takes::<UserForm>()
            .answers::<User>("The changed user.")
            .fails(&[409]),
        delete("/v1/users/{name}", "deleteUser", "Removes a user with tokens, logins, grants and accounts.")
            .query(vec![text(
                "successor",
                "The user who gets accounts and memberships; if left out, the accounts are deleted.",
            )])
            .confirms("Removed.")
            .fails(&[409]),
        post("/v1/users/{name}/handover", "handOver", "Makes another user the owner; for the owner.")
            .takes::<Handover>()
            .answers::<User>("The changed user.")
            .fails(&[409]),
        get("/v1/removals", "listRemovals", "Lists removed users of other issuers.")
            .answers::<Removals>("All removals."),
        delete("/v1/removals/{id}", "liftRemoval", "Lifts a removal, so that the user can log in again.")
            .confirms("Lifted."),
    ]
}

fn clients() -> Vec<Operation> {
    vec![
        get("/v1/clients", "listClients", "Lists the OAuth clients.").answers::<Clients>("All clients."),
        post("/v1/clients", "createClient", "Creates a client.")
            .takes::<NewClient>()
            .creates::<CreatedClient>("The client, with its secret if it has one."),
        get("/v1/clients/{id}", "getClient", "Shows one client.").answers::<Client>("The client."),
        delete("/v1/clients/{id}", "deleteClient", "Removes a client with its consents and grants.")
            .confirms("Removed."),
        post("/v1/clients/{id}/approve", "approveClient", "Approves the redirect addresses of a client.")
            .answers::<Client>("The changed client."),
    ]
}

fn pins() -> Vec<Operation> {
    vec![
        get("/v1/pins", "listPins", "Lists approved tools and tools waiting for approval.")
            .query(parameter::of_pins())
            .answers::<Pins>("All tools that are pinned or waiting for approval."),
        get("/v1/pins/{key}", "getPin", "Shows the approved and the current definition and their differences.")
            .answers::<PinDetail>("The pin."),
        post("/v1/pins/{key}/approve", "approvePin", "Approves the reviewed definition.")
            .takes::<PinApproval>()
            .answers::<PinDetail>("The changed pin.")
            .fails(&[409]),
        post("/v1/pins/{key}/block", "blockPin", "Holds a tool back until it is approved.")
            .answers::<PinDetail>("The changed pin.")
            .fails(&[409]),
    ]
}

fn presence() -> Vec<Operation> {
    vec![
        get("/v1/sessions", "listSessions", "Lists the open HTTP sessions of MCP clients in this process.")
            .answers::<Sessions>("The list.")
            .fails(&[503]),
        delete("/v1/sessions/{id}", "endSession", "Ends a session and its running calls.")
            .confirms("Ended.")
            .fails(&[503]),
        get("/v1/consents", "listConsents", "Lists the consents that users gave to clients.")
            .answers::<Consents>("The list.")
            .fails(&[503]),
        delete("/v1/consents/{id}", "endConsent", "Revokes a consent and the client's tokens for this user.")
            .confirms("Ended.")
            .fails(&[503]),
        get("/v1/logins", "listLogins", "Lists the browsers in which users are logged in.")
            .answers::<Logins>("The list.")
            .fails(&[503]),
        delete("/v1/logins/{id}", "endLogin", "Logs a browser out.").confirms("Ended.").fails(&[503]),
    ]
}

fn audit() -> Vec<Operation> {
    vec![
        get("/v1/audit", "listAudit", "Lists the audit records, newest first.")
            .query(parameter::of_audit())
            .answers::<AuditPage>("A page of records.")
            .fails(&[503]),
        get("/v1/audit/{seq}", "getAuditRecord", "Shows one record.")
            .answers::<AuditRecord>("The record.")
            .fails(&[503]),
        Operation {
            texts: &["application/x-ndjson", "text/csv"],
            ..get("/v1/audit/export", "exportAudit", "Exports the records as a file, oldest first.")
                .query(parameter::of_export())
                .answer(200, "The file.", None)
                .fails(&[503])
        },
        get("/v1/audit/verify", "verifyAudit", "Verifies the hash chain of the records.")
            .answers::<AuditVerdict>("The result of the verification.")
            .fails(&[503]),
        post(
            "/v1/audit/resume-trim",
            "resumeAuditTrim",
            "Confirms the machine's clock after a jump, so that old records are deleted again.",
        )
        .confirms("Confirmed.")
        .fails(&[503]),
    ]
}

fn health() -> Vec<Operation> {
    vec![
        Operation {
            needs_token: false,
            ..get("/", "root", "Returns the health of the gateway.").answers::<Health>("It is running.")
        },
        Operation {
            needs_token: false,
            ..get("/health", "health", "Returns the health of the gateway.").answers::<Health>("It is running.")
        },
    ]
}
