//! Users, logins and grants with two processes on one PostgreSQL: changes of one reach the other.

use std::time::Instant;

use hikite_testkit::gateway::LIMIT;
use hikite_testkit::postgres;
use hikite_vault::MasterKey;

use super::*;
use crate::PROGRAMS;

const PUBLIC: &str = "https://hikite.example";
/// Bound for a revocation to reach all processes.
const SOON: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns an authorization request for the public URL of both processes.
fn asked(client: &str) -> String {
    asked_for(client, "https://hikite.example/mcp")
}

fn asked_for(client: &str, resource: &str) -> String {
    let fields = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", "read call"),
        ("resource", resource),
    ];
    format!("/oauth/authorize?{}", form(&fields))
}

/// Waits until the process answers a bearer with this status.
async fn answers(gateway: &TestGateway, token: &str, status: u16) {
    let begin = Instant::now();
    while me(gateway, token).await.status != status {
        assert!(begin.elapsed() < LIMIT, "not {status} yet:\n{}", gateway.stderr());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_one_process_gives_another_takes_and_takes_back() {
    let config = json!({
        "store": { "url": postgres::database() },
        "server": { "public_url": PUBLIC },
        "limits": { "failed_logins": 0 },
    });
    let key = MasterKey::random().expect("random").text();
    let variables = [("HIKITE_VAULT_KEY", key.expose())];
    let here = TestGateway::start_with(&PROGRAMS, config.clone(), &variables).await;
    let there = TestGateway::start_with(&PROGRAMS, config, &variables).await;
    let mut browser = TestBrowser::default();
    let other_link = setup_path(&there).await;
    let page = browser.get(&here, &setup_path(&here).await).await;
    let done = browser.post(&here, "/setup", &page, &[("name", "kana"), ("password", PASSWORD)]).await;
    done.leads_to("/ui/start");
    assert_eq!(TestBrowser::default().get(&there, &other_link).await.status, 403, "there is an owner");
    let client = registered(&there).await;

    // Requested here, approved there, exchanged here.
    let page = browser.get(&here, &asked(&client)).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let back = browser.post(&there, "/oauth/consent", &page, &[("decision", "allow")]).await;
    let answer = back.leads_to(REDIRECT);
    assert_eq!(answer["iss"], PUBLIC);
    let exchanges =
        [&here, &there].map(|gateway| async { ask_token(gateway, &exchange(&client, &answer["code"])).await });
    let [one, other] = exchanges;
    let (one, other) = tokio::join!(one, other);
    let statuses = [one.status, other.status];
    assert!(statuses.contains(&400), "a code is good once, wherever it comes: {statuses:?}");

    let page = browser.get(&there, &asked(&client)).await;
    let back = browser.post(&here, "/oauth/consent", &page, &[("decision", "allow")]).await;
    let given = ask_token(&here, &exchange(&client, &back.leads_to(REDIRECT)["code"])).await.value();
    for gateway in [&here, &there] {
        answers(gateway, access(&given), 200).await;
    }
    let refresh = given["refresh_token"].as_str().expect("a token");
    let fields = [("grant_type", "refresh_token"), ("client_id", &*client), ("refresh_token", refresh)];
    let all = (0..40).map(|number| ask_token(if number % 2 == 0 { &here } else { &there }, &fields));
    let mut pairs: Vec<String> =
        futures_util::future::join_all(all).await.iter().map(|reply| access(&reply.value()).to_owned()).collect();
    pairs.dedup();
    assert_eq!(pairs.len(), 1, "one rotation, in whichever process");
    let fields = form(&[("client_id", &client), ("token", &pairs[0])]);
    assert_eq!(there.send(HttpRequest::new("POST", "/oauth/revoke").form(fields)).await.status, 200);
    let begin = Instant::now();
    for gateway in [&there, &here] {
        answers(gateway, &pairs[0], 401).await;
    }
    assert!(begin.elapsed() < SOON, "taken back everywhere after {:?}", begin.elapsed());
    let mut other = TestBrowser::default();
    let page = other.get(&there, "/oauth/login").await;
    let login = [("name", "kana"), ("password", PASSWORD)];
    other.post(&there, "/oauth/login", &page, &login).await.leads_to("/ui");
    let shown = other.get(&here, "/oauth/login").await;
    assert!(shown.text.contains("<p>kana</p>"), "a login there is one here: {}", shown.text);
}

#[tokio::test]
async fn a_project_binds_in_every_process() {
    let config = json!({
        "store": { "url": postgres::database() },
        "server": { "public_url": PUBLIC },
        "limits": { "failed_logins": 0 },
    });
    let key = MasterKey::random().expect("random").text();
    let variables = [("HIKITE_VAULT_KEY", key.expose())];
    let here = TestGateway::start_with(&PROGRAMS, config.clone(), &variables).await;
    let there = TestGateway::start_with(&PROGRAMS, config, &variables).await;
    let mut browser = set_up(&here).await;
    for name in ["work", "home"] {
        crate::identity::project(&here, name, json!({ "members": ["owner", "alice"] })).await;
    }
    let client = registered(&here).await;
    let page = browser.get(&here, &asked_for(&client, "https://hikite.example/mcp/work")).await;
    let back = browser.post(&here, "/oauth/consent", &page, &[("decision", "allow")]).await;
    let given = ask_token(&here, &exchange(&client, &back.leads_to(REDIRECT)["code"])).await.value();
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", &*client),
        ("refresh_token", given["refresh_token"].as_str().expect("a token")),
    ];
    answers(&there, access(&given), 200).await;
    let next = ask_token(&there, &fields).await.value();
    for (gateway, tokens) in [(&here, &given), (&there, &given), (&here, &next), (&there, &next)] {
        answers(gateway, access(tokens), 200).await;
        assert_eq!(me(gateway, access(tokens)).await.value()["project"], "work");
        let elsewhere = crate::identity::as_bearer(access(tokens), "POST", "/mcp/home");
        assert_eq!(gateway.send(elsewhere).await.status, 404);
    }

    // A user bound to a project here is bound there.
    let form = json!({ "name": "alice", "password": PASSWORD }).to_string();
    assert_eq!(here.send(here.request("POST", "/v1/users").json(form)).await.status, 201);
    let personal = crate::identity::token(&here, json!({ "name": "hers", "subject": "alice" })).await;
    answers(&there, &personal.secret, 200).await;
    let bind = json!({ "project": "home" }).to_string();
    assert_eq!(here.send(here.request("PATCH", "/v1/users/alice").json(bind)).await.status, 200);
    for gateway in [&here, &there] {
        let begin = Instant::now();
        while me(gateway, &personal.secret).await.value()["project"] != "home" {
            assert!(begin.elapsed() < LIMIT, "she is not bound yet:\n{}", gateway.stderr());
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let elsewhere = crate::identity::as_bearer(&personal.secret, "POST", "/mcp/work");
        assert_eq!(gateway.send(elsewhere).await.status, 404);
    }
}
