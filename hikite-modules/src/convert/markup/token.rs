//! Tokenizer for markup. Invalid tags become text; comments and declarations are dropped. Runs in linear time on any
//! input.

use super::entity::decode;

#[derive(Debug, PartialEq)]
pub(in crate::convert) enum MarkupToken {
    Text(String),
    Open(Tag),
    Close(String),
}

#[derive(Debug, PartialEq, Default)]
pub(in crate::convert) struct Tag {
    /// Lowercase name.
    pub(in crate::convert) name: String,
    pub(in crate::convert) attributes: Vec<(String, String)>,
    /// Set if the tag ends with `/>`.
    pub(in crate::convert) is_closed: bool,
}

impl Tag {
    /// Returns an attribute, or an empty string.
    pub(in crate::convert) fn attribute(&self, name: &str) -> &str {
        find(&self.attributes, name)
    }
}

pub(super) fn find<'a>(attributes: &'a [(String, String)], name: &str) -> &'a str {
    attributes.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

pub(in crate::convert) fn tokens(text: &str) -> impl Iterator<Item = MarkupToken> {
    MarkupTokenizer { text, at: 0, has_comment_end: true, has_quote: [true; 2], has_end: true }
}

struct MarkupTokenizer<'a> {
    text: &'a str,
    at: usize,
    /// Cleared once a search failed, so that it is not repeated.
    has_comment_end: bool,
    has_quote: [bool; 2],
    has_end: bool,
}

impl Iterator for MarkupTokenizer<'_> {
    type Item = MarkupToken;

    fn next(&mut self) -> Option<MarkupToken> {
        let mut words = String::new();
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if !rest.starts_with('<') {
                let end = rest.find('<').unwrap_or(rest.len());
                decode(&rest[..end], &mut words);
                self.at += end;
                continue;
            }
            if self.skip_comment(&mut words) {
                continue;
            }
            if !words.is_empty() && starts_tag(rest) {
                return Some(MarkupToken::Text(words));
            }
            let Some((token, end)) = self.tag() else {
                words.push('<');
                self.at += 1;
                continue;
            };
            self.at = end;
            if let MarkupToken::Open(tag) = &token
                && !tag.is_closed
                && matches!(tag.name.as_str(), "script" | "style")
            {
                self.skip_raw(&tag.name);
            }
            return Some(token);
        }
        (!words.is_empty()).then_some(MarkupToken::Text(words))
    }
}

impl MarkupTokenizer<'_> {
    /// Skips a comment or declaration. CDATA becomes text.
    fn skip_comment(&mut self, words: &mut String) -> bool {
        let rest = &self.text[self.at..];
        if let Some(data) = rest.strip_prefix("<![CDATA[") {
            let end = data.find("]]>");
            words.push_str(&data[..end.unwrap_or(data.len())]);
            self.at += end.map_or(rest.len(), |end| "<![CDATA[]]>".len() + end);
            return true;
        }
        if let Some(comment) = rest.strip_prefix("<!--") {
            let end = if self.has_comment_end { comment.find("-->") } else { None };
            self.has_comment_end = end.is_some();
            self.at += end.map_or(0, |end| end + 7);
            return end.is_some();
        }
        let is_declaration = rest.starts_with("<?") || rest.starts_with("<!");
        let end = if is_declaration && self.has_end { rest.find('>') } else { None };
        if is_declaration {
            self.has_end = end.is_some();
        }
        self.at += end.map_or(0, |end| end + 1);
        end.is_some()
    }

    /// Skips the content of a script or style sheet.
    fn skip_raw(&mut self, name: &str) {
        let rest = &self.text[self.at..];
        let close = |at: &usize| rest[at + 2..].get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        let end = rest.match_indices("</").map(|(at, _)| at).find(close);
        self.at += end.unwrap_or(rest.len());
    }

    /// Parses the tag at the current position. Returns it with its end.
    fn tag(&mut self) -> Option<(MarkupToken, usize)> {
        let bytes = self.text.as_bytes();
        let is_close = bytes.get(self.at + 1) == Some(&b'/');
        let start = self.at + 1 + usize::from(is_close);
        if !bytes.get(start).is_some_and(u8::is_ascii_alphabetic) || !self.has_end {
            return None;
        }
        let end = ends(bytes, start, |byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'<'));
        let mut tag = Tag { name: self.text[start..end].to_ascii_lowercase(), ..Tag::default() };
        let mut at = end;
        loop {
            at = ends(bytes, at, |byte| !byte.is_ascii_whitespace());
            match bytes.get(at) {
                None => {
                    self.has_end = false;
                    return None;
                }
                Some(b'<') => return None,
                Some(b'>') if is_close => return Some((MarkupToken::Close(tag.name), at + 1)),
                Some(b'>') => return Some((MarkupToken::Open(tag), at + 1)),
                Some(b'/') => {
                    tag.is_closed = bytes.get(at + 1) == Some(&b'>');
                    at += 1;
                }
                Some(_) => at = self.attribute(at, &mut tag),
            }
        }
    }

    /// Parses one attribute and returns its end.
    fn attribute(&mut self, start: usize, tag: &mut Tag) -> usize {
        let bytes = self.text.as_bytes();
        let is_name_end = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'<' | b'=');
        // A stray `=` counts as a name, so that parsing always advances.
        let name_end = ends(bytes, start + 1, is_name_end);
        let Some(name) = self.text.get(start..name_end) else { return name_end };
        let at = ends(bytes, name_end, |byte| !byte.is_ascii_whitespace());
        if bytes.get(at) != Some(&b'=') {
            tag.attributes.push((name.to_ascii_lowercase(), String::new()));
            return name_end;
        }
        let at = ends(bytes, at + 1, |byte| !byte.is_ascii_whitespace());
        let (value, end) = self.value(at);
        let mut decoded = String::new();
        decode(value, &mut decoded);
        tag.attributes.push((name.to_ascii_lowercase(), decoded));
        end
    }

    fn value(&mut self, at: usize) -> (&str, usize) {
        let bytes = self.text.as_bytes();
        let quote = bytes.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\''));
        if let Some(quote) = quote {
            let index = usize::from(quote == b'\'');
            let found = self.has_quote[index].then(|| self.text[at + 1..].find(char::from(quote))).flatten();
            if let Some(length) = found {
                return (&self.text[at + 1..at + 1 + length], at + length + 2);
            }
            self.has_quote[index] = false;
        }
        let end = ends(bytes, at, |byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'<'));
        (&self.text[at..end], end)
    }
}

fn starts_tag(rest: &str) -> bool {
    let name = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the position of the first matching byte from `from` on.
fn ends(bytes: &[u8], from: usize, is_end: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().position(|byte| is_end(*byte)).map_or(bytes.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let printable: Vec<String> = tokens(text)
            .map(|token| match token {
                MarkupToken::Text(text) => text,
                MarkupToken::Close(name) => format!("</{name}>"),
                MarkupToken::Open(tag) => {
                    let attributes: Vec<String> =
                        tag.attributes.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                    format!("<{}{}{}>", tag.name, attributes.concat(), if tag.is_closed { "/" } else { "" })
                }
            })
            .collect();
        assert_eq!(printable, expected, "{text}");
    }

    #[test]
    fn tags_and_texts_are_told_apart() {
        check("<P Class=x>日本 &amp; 語</p >", &["<p class=x>", "日本 & 語", "</p>"]);
        check("a<br/>b<br>", &["a", "<br/>", "b", "<br>"]);
        check("<a href='x?a=1&amp;b=\"2\"' disabled data-y = z>", &["<a href=x?a=1&b=\"2\" disabled= data-y=z>"]);
        check("<ri:page ri:content-title=\"題名\" />", &["<ri:page ri:content-title=題名/>"]);
    }

    #[test]
    fn what_is_no_tag_stays_text() {
        check("1 < 2 <3 <", &["1 < 2 <3 <"]);
        check("if a <b then <b>c</b>", &["if a ", "<b then ", "<b>", "c", "</b>"]);
        check("x <y", &["x ", "<y"]);
        check("<a href=\"no end>x</a>", &["<a href=\"no end=>", "x", "</a>"]);
    }

    #[test]
    fn comments_declarations_and_scripts_are_left_out() {
        check("a<!-- <b> -->c<!DOCTYPE html><?xml?>d", &["acd"]);
        check(
            "<style>p > a { }</style>x<SCRIPT>if (a</b>) {}</Script>y",
            &["<style>", "</style>", "x", "<script>", "</script>", "y"],
        );
        check("a <!-- never ended <b>c</b>", &["a <!-- never ended ", "<b>", "c", "</b>"]);
    }

    #[test]
    fn cdata_is_text_as_it_stands() {
        check("<![CDATA[a < b && c ]] > &amp;]]>d", &["a < b && c ]] > &amp;d"]);
        check("<![CDATA[a]]]]><![CDATA[>b]]>", &["a]]>b"]);
        check("<![CDATA[never ended <b>", &["never ended <b>"]);
    }
}
