//! Personal access tokens. A secret is shown once; only its SHA-256 is stored, which is enough to recognize it: 256
//! random bits need neither salt nor a slow hash.

use std::sync::Arc;

use hikite_core::caller::{Caller, OWNER, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::suggestion;
use hikite_core::time::rfc3339;
use hikite_core::violation::{self, Violation};
use hikite_store::TokenRow;
use sha2::{Digest, Sha256};

use crate::identity::{OF_CLIENT, USER_ID};

/// Prefix of every secret.
pub(super) const PREFIX: &str = "hk_";
/// Length of a secret: 62^43 exceeds 2^256.
const SECRET_CHARS: usize = 43;
const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ID: &str = "tok_";
const ID_CHARS: usize = 8;
/// Letters and digits without lookalikes.
const PLAIN_LETTERS: &[u8; 31] = b"abcdefghijkmnpqrstuvwxyz2345678";
/// Prefix of the subject of a token that names none.
pub const OF_TOKEN: &str = "token:";
/// Reserved prefixes of subjects.
const RESERVED_PREFIXES: [&str; 3] = [OF_TOKEN, USER_ID, OF_CLIENT];
const WORD_CHARS: usize = 128;
/// Longest lifetime: ten years.
const LONGEST_SECONDS: u32 = 10 * 366 * 86_400;
const MEMBERS: [&str; 6] = ["name", "user", "subject", "project", "scopes", "expiresIn"];

pub(super) type TokenHash = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalToken {
    pub id: Arc<str>,
    /// Name given by the token's creator.
    pub name: String,
    pub subject: Arc<str>,
    pub project: Option<Arc<str>>,
    pub scopes: Scopes,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970; zero means never.
    pub expires_at: u64,
}

impl PersonalToken {
    /// Reads the document of a new token and reports all faults at once. `user` is the subject of the user that the
    /// token acts for, if any.
    pub(super) fn read(form: &Object, user: Option<&Arc<str>>, now: u64) -> Result<Self, Error> {
        let id: Arc<str> = format!("{ID}{}", random(PLAIN_LETTERS, ID_CHARS)?).into();
        let mut reader = TokenReader { form, faults: Vec::new() };
        let mut token = reader.token(id, now, user.is_some());
        if let Some(user) = user {
            token.subject = Arc::clone(user);
        }
        if reader.faults.is_empty() { Ok(token) } else { Err(violation::error(&reader.faults)) }
    }

    /// Reads a stored token; `None` if it is invalid, in which case it authenticates nobody.
    pub(super) fn of(row: &TokenRow) -> Option<Self> {
        let form = row.form.object()?;
        let scopes = scopes(form.get("scopes")?)?;
        Some(Self {
            id: row.id.as_str().into(),
            name: form.text("name")?,
            subject: form.text("subject")?.into(),
            project: Some(row.project.as_str()).filter(|project| !project.is_empty()).map(Arc::from),
            scopes,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }

    pub(super) fn row(&self, hash: &TokenHash) -> TokenRow {
        let form = Object::default()
            .with("name", self.name.as_str())
            .with("subject", &*self.subject)
            .with("scopes", names(self.scopes));
        TokenRow {
            id: self.id.to_string(),
            hash: hex(hash),
            project: self.project.as_deref().unwrap_or_default().to_owned(),
            form: form.raw(),
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
            subject: Arc::clone(&self.subject),
            project: self.project.clone(),
            scopes: self.scopes,
            token: Some(Arc::clone(&self.id)),
        }
    }

    /// Returns the REST object without the secret. `active` says whether the token authenticates.
    pub(super) fn object(&self, active: bool) -> Object {
        let project = self.project.as_deref().map_or_else(Raw::null, Raw::from);
        Object::default()
            .with("id", &*self.id)
            .with("name", self.name.as_str())
            .with("subject", &*self.subject)
            .with("project", project)
            .with("scopes", names(self.scopes))
            .with("createdAt", rfc3339(self.created_at))
            .with("expiresAt", expiry_text(self.expires_at))
            .with("active", Raw::of(&active))
    }
}

/// Returns the expiry as RFC 3339 text, or `null`.
pub(super) fn expiry_text(expires_at: u64) -> Raw {
    if expires_at == 0 { Raw::null() } else { rfc3339(expires_at).into() }
}

/// Generates a secret.
pub(super) fn secret() -> Result<Secret, Error> {
    Ok(Secret::hidden(format!("{PREFIX}{}", random(LETTERS, SECRET_CHARS)?)))
}

pub(super) fn hash(secret: &str) -> TokenHash {
    Sha256::digest(secret).into()
}

/// Parses a hash from the store's hex form.
pub(super) fn read_hash(hex: &str) -> Option<TokenHash> {
    let mut hash = TokenHash::default();
    if hex.len() != hash.len() * 2 || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).ok()?;
    }
    Some(hash)
}

/// Generates uniformly distributed random letters.
fn random(letters: &[u8], count: usize) -> Result<String, Error> {
    let even = 256 / letters.len() * letters.len();
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let mut bytes = [0_u8; 64];
        getrandom::fill(&mut bytes)
            .map_err(|_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes."))?;
        let fair = bytes.into_iter().map(usize::from).filter(|byte| *byte < even);
        text.extend(fair.take(count - text.len()).map(|byte| char::from(letters[byte % letters.len()])));
    }
    Ok(text)
}

fn names(scopes: Scopes) -> Raw {
    Raw::of(&scopes.names().collect::<Vec<_>>())
}

/// Parses a non-empty list of scopes; `None` if one is unknown.
fn scopes(value: &Raw) -> Option<Scopes> {
    let words = value.decode::<Vec<String>>().ok().filter(|words| !words.is_empty())?;
    words.iter().try_fold(Scopes::NONE, |all, word| Some(all.with(Scopes::parse(word)?)))
}

struct TokenReader<'a> {
    form: &'a Object,
    faults: Vec<Violation>,
}

impl TokenReader<'_> {
    fn token(&mut self, id: Arc<str>, now: u64, of_user: bool) -> PersonalToken {
        for member in self.form.unknown(&MEMBERS) {
            let near = suggestion::did_you_mean(member, MEMBERS);
            let hint = near.map(|near| format!(" {near}")).unwrap_or_default();
            self.faults.push(Violation::new(violation::step(member), format!("Unknown member `{member}`.{hint}")));
        }
        let name = self.word("name").unwrap_or_default();
        if name.trim().is_empty() && self.faults.iter().all(|fault| fault.pointer != "/name") {
            self.fault("name", "`name` is required: a name by which you recognize the token.");
        }
        let subject = if of_user { "".into() } else { self.subject(&id) };
        let project = self.word("project").filter(|project| !project.is_empty()).map(Arc::from);
        let scopes = self.scopes();
        if project.is_some() && scopes.contains(Scopes::ADMIN) {
            let message = "An admin token belongs to no project: leave out `project`, or the scope `admin`.";
            self.fault("scopes", message);
        }
        let expires_at = self.expires_in().map_or(0, |seconds| now + u64::from(seconds) * 1000);
        PersonalToken { id, name, subject, project, scopes, created_at: now, expires_at }
    }

    /// Returns the subject of the token, and rejects reserved names.
    fn subject(&mut self, id: &str) -> Arc<str> {
        let Some(subject) = self.word("subject") else { return format!("{OF_TOKEN}{id}").into() };
        if subject.trim().is_empty() || subject.chars().any(char::is_control) {
            self.fault("subject", "`subject` must be a name.");
        } else if subject == OWNER || RESERVED_PREFIXES.iter().any(|start| subject.starts_with(start)) {
            let begins = RESERVED_PREFIXES.join("`, `");
            self.fault("subject", format!("`{OWNER}` and names that begin with `{begins}` are reserved."));
        }
        subject.into()
    }

    fn scopes(&mut self) -> Scopes {
        let Some(value) = self.value("scopes") else { return Scopes::DEFAULT };
        scopes(value).unwrap_or_else(|| {
            let known = Scopes::NAMES.map(|(name, _)| name).join("`, `");
            self.fault("scopes", format!("`scopes` must be a list of one or more of `{known}`."));
            Scopes::NONE
        })
    }

    fn expires_in(&mut self) -> Option<u32> {
        let seconds = self.value("expiresIn")?.whole().filter(|span| (1..=LONGEST_SECONDS).contains(span));
        if seconds.is_none() {
            let message = format!("`expiresIn` must be an integer number of seconds, from 1 to {LONGEST_SECONDS}.");
            self.fault("expiresIn", message);
        }
        seconds
    }

    fn word(&mut self, member: &str) -> Option<String> {
        let text = self.value(member)?.text().filter(|text| text.chars().count() <= WORD_CHARS);
        if text.as_ref().is_none_or(|text| text.contains('\0')) {
            self.fault(member, format!("`{member}` must be a string of at most {WORD_CHARS} characters."));
        }
        text
    }

    /// Returns a member that is present and not `null`.
    fn value(&self, member: &str) -> Option<&Raw> {
        self.form.get(member).filter(|value| !value.is_null())
    }

    fn fault(&mut self, member: &str, message: impl Into<String>) {
        self.faults.push(Violation::new(violation::step(member), message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<PersonalToken, Vec<String>> {
        let form = Raw::parse(form.to_owned()).expect("JSON").object().expect("an object");
        PersonalToken::read(&form, None, 1000).map_err(|error| {
            let faults = error.details.and_then(|details| details.items()).unwrap_or_default();
            faults.iter().filter_map(|fault| fault.object()?.text("pointer")).collect()
        })
    }

    #[test]
    fn a_token_says_little_and_gets_the_rest() {
        let token = read(r#"{"name":"ci"}"#).expect("a token");
        assert!(token.id.starts_with("tok_") && token.id.len() == 12, "{}", token.id);
        assert_eq!(&*token.subject, format!("token:{}", token.id));
        assert_eq!((token.project.clone(), token.scopes, token.expires_at), (None, Scopes::DEFAULT, 0));
        assert_eq!(PersonalToken::of(&token.row(&hash("x"))), Some(token), "as it was after the store");
        let token = read(r#"{"name":"ci","subject":"alice","project":"work","scopes":["read"],"expiresIn":60}"#);
        let token = token.expect("a token");
        assert_eq!((&*token.subject, token.project.as_deref()), ("alice", Some("work")));
        assert_eq!((token.scopes, token.expires_at), (Scopes::READ, 61_000));
        assert_eq!(PersonalToken::of(&token.row(&hash("x"))), Some(token));
    }

    #[test]
    fn what_is_wrong_is_told_at_once() {
        assert_eq!(read("{}"), Err(vec!["/name".to_owned()]));
        for (form, pointers) in [
            (r#"{"name":"a","scopes":[],"expiresIn":0,"extra":1}"#, &["/extra", "/scopes", "/expiresIn"][..]),
            (r#"{"name":"a","scopes":["write"]}"#, &["/scopes"]),
            (r#"{"name":"a","subject":"owner"}"#, &["/subject"]),
            (r#"{"name":"a","subject":"token:tok_x"}"#, &["/subject"]),
            (r#"{"name":"a","subject":"a\nb"}"#, &["/subject"]),
            (r#"{"name":"a","project":"work","scopes":["read","admin"]}"#, &["/scopes"]),
            (r#"{"name":1,"project":{},"expiresIn":"soon"}"#, &["/name", "/project", "/expiresIn"]),
        ] {
            let expected: Vec<String> = pointers.iter().map(ToString::to_string).collect();
            assert_eq!(read(form), Err(expected), "{form}");
        }
    }

    #[test]
    fn secrets_are_long_and_each_is_another() {
        let one = secret().expect("random");
        assert!(one.expose().starts_with("hk_") && one.expose().len() == 46);
        assert!(one.expose()[3..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(one, secret().expect("random"));
        assert_eq!(format!("{one:?}"), "\"***\"");
    }

    #[test]
    fn a_hash_is_read_as_it_was_written() {
        let token = read(r#"{"name":"ci"}"#).expect("a token");
        let row = token.row(&hash("hk_x"));
        assert_eq!(row.hash.len(), 64);
        assert_eq!(read_hash(&row.hash), Some(hash("hk_x")));
        for wrong in ["", "00", &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(read_hash(wrong), None, "{wrong}");
        }
    }
}
