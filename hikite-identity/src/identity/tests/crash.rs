//! Panic messages contain no secrets: a panic prints the `Debug` form of its values.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hikite_core::secret::Secret;
use hikite_vault::{Password, SigningKey, UnverifiedToken};

use super::super::signing::SigningKeys;
use super::*;
use crate::federation::FederationCallback;

/// Returns the message of a panic that formats this value.
fn crash(value: impl Debug) -> String {
    let broken = catch_unwind(AssertUnwindSafe(|| panic!("a crash: {value:?}")));
    let payload = broken.expect_err("it panics");
    payload.downcast_ref::<String>().expect("words").clone()
}

#[tokio::test]
async fn a_crash_tells_no_secret() {
    const CANARY: &str = "canary-2f9d61b0";
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let code = code_for(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let given = pair(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let user = identity.users().of_subject(OWNER).expect("an owner");
    let login = identity.logins().begin(&user).await.expect("a login");
    let (access, refresh) = (given.access.expose(), given.refresh.as_ref().expect("one").expose());
    let master = MasterKey::random().expect("random");
    let (signing, signing_text) = {
        let signing = SigningKeys::random(0).expect("random");
        (signing.clone(), signing.text())
    };
    let signing_key = SigningKey::random().expect("random");
    let comeback = FederationCallback { state: Some(CANARY.into()), code: Some(CANARY.into()), iss: None, error: None };
    let said = [
        crash(&given),
        crash(&login),
        crash(&*identity),
        crash(super::code(&code, &client)),
        crash(UnverifiedToken::read(access).expect("a token")),
        crash(identity.tokens().bearer(&terms(), access)),
        crash(&master),
        crash(KeyRing::new(MasterKey::parse(master.text().expose()).expect("a key"), Vec::new())),
        crash(&signing),
        crash(&signing_key),
        crash(Password::new(CANARY)),
        crash(Secret::hidden(CANARY)),
        crash(comeback),
        crash(TokenError::Failed(
            hikite_core::error::Error::new(ErrorKind::Internal, "x").because(format!("{login:?}")),
        )),
    ]
    .join("\n");
    let signature = access.rsplit('.').next().expect("a signature");
    let signing_text = signing_text.expose().rsplit(' ').next().expect("a key").to_owned();
    for secret in [
        CANARY,
        &code,
        VERIFIER,
        access,
        signature,
        refresh,
        login.secret.expose(),
        master.text().expose(),
        &signing_text,
        signing_key.secret().expose(),
    ] {
        assert!(!said.contains(secret), "{secret} is in\n{said}");
    }
    assert!(said.contains("a crash: ") && said.lines().count() >= 14);
}
