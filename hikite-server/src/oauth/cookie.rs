//! The two cookies: one of a login, one of an anonymous visit, so that forms can be bound to both. Over HTTPS they have
//! the `__Host-` prefix; local installations have no HTTPS.

use http::HeaderMap;
use http::header::{COOKIE, HeaderValue, SET_COOKIE};

pub(crate) const LOGIN: &str = "hikite";
pub(crate) const VISIT: &str = "hikite-visit";
/// Lifetime of a login.
const LOGIN_SECONDS: u32 = 14 * 86_400;
/// Length of our values; others are ignored.
const CHARS: usize = 64;

/// Returns the value of a cookie; `None` if there are several of its name, because one may be injected.
pub(crate) fn read(headers: &HeaderMap, name: &str, is_https: bool) -> Option<String> {
    let name = full(name, is_https);
    let sent = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut values = sent
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(known, _)| *known == name)
        .map(|(_, value)| value.to_owned());
    let (value, another) = (values.next()?, values.next());
    let fine = value.len() == CHARS && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fine && another.is_none()).then_some(value)
}

pub(crate) fn set(headers: &mut HeaderMap, name: &str, value: &str, is_https: bool) {
    let age = if name == LOGIN { format!("; Max-Age={LOGIN_SECONDS}") } else { String::new() };
    put(headers, &format!("{}={value}{age}", full(name, is_https)), is_https);
}

pub(crate) fn clear(headers: &mut HeaderMap, name: &str, is_https: bool) {
    put(headers, &format!("{}=; Max-Age=0", full(name, is_https)), is_https);
}

fn put(headers: &mut HeaderMap, text: &str, is_https: bool) {
    let secure = if is_https { "; Secure" } else { "" };
    if let Ok(value) = HeaderValue::from_str(&format!("{text}; Path=/; HttpOnly; SameSite=Lax{secure}")) {
        headers.append(SET_COOKIE, value);
    }
}

fn full(name: &str, is_https: bool) -> String {
    if is_https { format!("__Host-{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, cookie.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn only_one_whole_cookie_of_the_right_name_counts() {
        let value = "0a".repeat(32);
        let plain = format!("hikite={value}");
        assert_eq!(read(&sent(&[&format!("x=1; {plain}; y=2")]), LOGIN, false), Some(value.clone()));
        assert_eq!(read(&sent(&[&format!("__Host-{plain}")]), LOGIN, true), Some(value.clone()));
        for wrong in [
            vec![],
            vec!["hikite=abc"],
            vec!["hikite="],
            vec![plain.as_str(), plain.as_str()],
            vec![&format!("hikite-visit={value}")],
        ] {
            assert_eq!(read(&sent(&wrong), LOGIN, false), None, "{wrong:?}");
        }
        assert_eq!(read(&sent(&[&plain]), LOGIN, true), None, "a name without its prefix proves nothing");
    }

    #[test]
    fn a_browser_is_told_to_keep_it_to_itself() {
        let mut headers = HeaderMap::new();
        set(&mut headers, LOGIN, "v", true);
        clear(&mut headers, VISIT, false);
        let told: Vec<&str> = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
        assert_eq!(
            told,
            [
                "__Host-hikite=v; Max-Age=1209600; Path=/; HttpOnly; SameSite=Lax; Secure",
                "hikite-visit=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"
            ]
        );
    }
}
