//! Rows of the typed tables, with every column set.

use hikite_core::json::Raw;
use serde_json::json;

use crate::{AccountRow, ClientRow, ConsentRow, DocumentRow, GrantRotation, GrantRow, LoginRow, PasskeyRow, PinRow};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn login(id: &str, subject: &str) -> LoginRow {
    LoginRow { id: id.into(), subject: subject.into(), version: 1, created_at: 5, expires_at: 1 << 50 }
}

pub(super) fn passkey(id: &str, subject: &str) -> PasskeyRow {
    PasskeyRow {
        id: id.into(),
        subject: subject.into(),
        name: "laptop \"1\"".into(),
        public_key: "pQEC".into(),
        counter: 4_294_967_295,
        version: 1,
        created_at: 5,
    }
}

pub(super) fn client(id: &str) -> ClientRow {
    ClientRow {
        id: id.into(),
        name: "日本 'q'".into(),
        origin: "registered".into(),
        redirect_uris: texts(&["http://127.0.0.1/a?b=\"c\"", "x:/y"]),
        approved: texts(&["https://x.example"]),
        secret_hash: Some("h".into()),
        grant_id: Some("grt_1".into()),
        looked_up_at: 9,
        address: "203.0.113.7".into(),
        version: 1,
        created_at: 5,
        expires_at: 1 << 50,
    }
}

pub(super) fn consent(id: &str, subject: &str) -> ConsentRow {
    ConsentRow {
        id: id.into(),
        subject: subject.into(),
        client: "c".into(),
        scopes: texts(&["read", "call"]),
        project: Some("work".into()),
        version: 1,
        created_at: 5,
    }
}

pub(super) fn grant(id: &str, subject: &str) -> GrantRow {
    GrantRow {
        id: id.into(),
        subject: Some(subject.into()),
        client: "c".into(),
        scopes: texts(&["read", "call"]),
        project: Some("work".into()),
        generation: 3,
        rotated_at: 7,
        key_id: "k".into(),
        sealed_key: "s".into(),
        last: Some(GrantRotation { access: "a".into(), scopes: texts(&["read"]), expires_at: 8, project: None }),
        version: 1,
        created_at: 5,
        expires_at: 1 << 50,
    }
}

pub(super) fn account(id: &str, subject: &str) -> AccountRow {
    AccountRow {
        id: id.into(),
        subject: subject.into(),
        provider: "p".into(),
        name: "work".into(),
        status: "reconnect".into(),
        problem: Some("gone".into()),
        verified_at: 6,
        is_default: true,
        shared: false,
        scopes: texts(&["a b"]),
        email: Some("a@b.example".into()),
        details: [("site".to_owned(), "x".to_owned())].into(),
        api: None,
        token_expires_at: 12,
        last_refresh: 11,
        permissions: Raw::of(&json!({ "deny": ["m:t"] })),
        version: 1,
        created_at: 5,
    }
}

pub(super) fn pin(tool: &str) -> (PinRow, DocumentRow) {
    let pin = PinRow {
        id: format!("m:{tool}"),
        module: "m".into(),
        hash: format!("hash of {tool}"),
        blocked: false,
        pinned_at: 4,
        version: 1,
        created_at: 5,
    };
    let definition = DocumentRow {
        kind: "definition",
        id: pin.hash.clone(),
        owner: String::new(),
        document: Raw::of(&json!({ "name": tool })),
        version: 1,
        created_at: 5,
        expires_at: 0,
    };
    (pin, definition)
}
