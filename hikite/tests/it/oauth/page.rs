//! The login pages and their security headers.

use super::*;

#[tokio::test]
async fn a_hostile_name_is_shown_and_does_nothing() {
    let (gateway, mut browser) = owned_gateway().await;
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=y>\u{202e}\u{200b}";
    let metadata = json!({ "client_name": hostile, "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let id = register(&gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned();
    let page = browser.get(&gateway, &authorize(&gateway, &id, &[("state", "\"><script>x</script>")])).await;
    assert_eq!(page.status, 200);
    for mark in ["<script", "<img", "\u{202e}", "\u{200b}", "\"'>"] {
        assert!(!page.text.contains(mark), "{mark}: {}", page.text);
    }
    assert!(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let wrong = browser.get(&gateway, "/oauth/authorize?client_id=%3Cscript%3E").await;
    assert!(wrong.status == 400 && !wrong.text.contains("<script"), "{}", wrong.text);
}

#[tokio::test]
async fn a_browser_is_told_to_run_nothing_of_others_and_to_keep_nothing() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let consent = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    let own = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    let and_back = own.replace("form-action 'self'", "form-action 'self' http://127.0.0.1:3999");
    // Pages with passkeys may run one script of ours.
    let with_ours = |policy: &str| format!("{policy}; script-src 'self'; connect-src 'self'");
    let next = format!("/oauth/login?next={}", quoted(&authorize(&gateway, &client, &[])));
    let mut visitor = TestBrowser::default();
    for (page, policy) in [
        (consent, and_back.as_str()),
        (visitor.get(&gateway, "/oauth/login").await, &with_ours(own)),
        (visitor.get(&gateway, &next).await, &with_ours(&and_back)),
        (visitor.get(&gateway, "/oauth/authorize").await, own),
        (visitor.get(&gateway, "/setup?token=x").await, own),
        (browser.get(&gateway, "/oauth/logout").await, own),
    ] {
        assert_eq!(page.header("content-security-policy"), policy);
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("content-type", "text/html; charset=utf-8"),
        ] {
            assert_eq!(page.header(name), value, "{name}");
        }
        let text = page.text.replace("<script src=\"/oauth/passkey.js\" defer></script>", "");
        assert!(!text.contains("<script") && !text.contains(" style="), "{text}");
    }
    let css = gateway.send(HttpRequest::new("GET", "/oauth/page.css")).await;
    assert_eq!((css.status, css.headers["content-type"].as_bytes()), (200, &b"text/css; charset=utf-8"[..]));
}

#[tokio::test]
async fn pages_speak_the_language_of_the_browser() {
    let (gateway, _) = owned_gateway().await;
    for (wanted, text) in [("ja,en;q=0.5", "<h1>ログイン</h1>"), ("en", "<h1>Log in</h1>")] {
        let request = HttpRequest::new("GET", "/oauth/login").header("accept-language", wanted);
        let page = gateway.send(request).await;
        assert!(page.text().contains(text), "{}", page.text());
        assert!(page.text().contains(&format!("<html lang=\"{}\">", &wanted[..2])));
    }
}

#[tokio::test]
async fn behind_https_cookies_are_for_this_host_alone() {
    let config = json!({ "server": { "public_url": "https://hikite.example" } });
    let gateway = configured(config).await;
    let request = HttpRequest::new("GET", "/oauth/login").header("host", "hikite.example");
    let cookie = gateway.send(request).await.headers["set-cookie"].to_str().expect("text").to_owned();
    assert!(
        cookie.starts_with("__Host-hikite-visit=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    let request = HttpRequest::new("GET", "/.well-known/oauth-authorization-server").header("host", "localhost");
    assert_eq!(
        gateway.send(request).await.value()["issuer"],
        "https://hikite.example",
        "one name, however it is asked"
    );
    gateway.wait_for_stderr("https://hikite.example/setup?token=").await;
}
