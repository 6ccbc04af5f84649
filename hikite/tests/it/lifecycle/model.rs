//! The access rules in minimal form: users, their tokens and accounts, and which calls succeed.

use serde_json::{Value, json};

/// A user that was created once. A name may be reused; a user is not.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct ModelUser {
    pub(super) name: String,
    pub(super) password: String,
    /// Deleted.
    pub(super) gone: bool,
    pub(super) disabled: bool,
    /// The user's mask denies `web:mirror`.
    pub(super) masked: bool,
    /// Member of the project `work`.
    pub(super) joined: bool,
}

/// A bearer token, valid or not.
#[derive(Debug, Clone)]
pub(super) struct ModelBearer {
    pub(super) secret: String,
    /// Id of a personal token; `None` for a grant.
    pub(super) token: Option<String>,
    pub(super) person: usize,
    /// Bound to the project `work`.
    pub(super) in_work: bool,
    /// Revoked, or ended by a new password.
    pub(super) ended: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ModelAccount {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) person: usize,
    /// Its mask denies `notion:search`.
    pub(super) masked: bool,
}

#[derive(Debug, Default)]
pub(super) struct LifecycleModel {
    pub(super) people: Vec<ModelUser>,
    pub(super) bearers: Vec<ModelBearer>,
    pub(super) accounts: Vec<ModelAccount>,
}

/// One possible call.
#[derive(Debug)]
pub(super) struct CallProbe {
    bearer: usize,
    pub(super) secret: String,
    pub(super) tool: &'static str,
    pub(super) account: Option<String>,
}

impl CallProbe {
    pub(super) fn arguments(&self) -> Value {
        if self.account.is_some() { json!({ "query": "x" }) } else { json!({ "text": "hi" }) }
    }
}

impl LifecycleModel {
    /// Returns all combinations of bearers, tools and accounts that ever existed.
    pub(super) fn probes(&self) -> Vec<CallProbe> {
        let mut all = Vec::new();
        for (at, bearer) in self.bearers.iter().enumerate() {
            let probe = |tool, account| CallProbe { bearer: at, secret: bearer.secret.clone(), tool, account };
            all.push(probe("web:echo", None));
            all.push(probe("web:mirror", None));
            all.extend(self.accounts.iter().map(|account| probe("notion:search", Some(account.name.clone()))));
        }
        all
    }

    pub(super) fn succeeds(&self, probe: &CallProbe) -> bool {
        let bearer = &self.bearers[probe.bearer];
        let person = &self.people[bearer.person];
        let comes_in = !bearer.ended && !person.gone && !person.disabled && (!bearer.in_work || person.joined);
        let allowed = match &probe.account {
            None if probe.tool == "web:mirror" => !person.masked && !bearer.in_work,
            None => true,
            Some(name) => self
                .accounts
                .iter()
                .any(|account| account.name == *name && account.person == bearer.person && !account.masked),
        };
        comes_in && allowed
    }

    /// Returns the existing users, disabled or not.
    pub(super) fn present(&self) -> Vec<usize> {
        (0..self.people.len()).filter(|at| !self.people[*at].gone).collect()
    }

    /// Returns the users who could log in.
    pub(super) fn enabled(&self) -> Vec<usize> {
        self.present().into_iter().filter(|at| !self.people[*at].disabled).collect()
    }

    /// Returns a bearer with full access for a user.
    pub(super) fn key_of(&self, person: usize) -> Option<&ModelBearer> {
        self.bearers.iter().find(|bearer| bearer.person == person && !bearer.ended && !bearer.in_work)
    }

    pub(super) fn members(&self) -> Vec<&str> {
        let joined = self.people.iter().filter(|person| !person.gone && person.joined);
        joined.map(|person| person.name.as_str()).chain(["nobody"]).collect()
    }
}
