//! Body of a request: a JSON document with references in its strings. A string that consists of one reference keeps the
//! type of the value; members with absent values are left out.

use bytes::Bytes;
use hikite_core::json::{Object, Raw, write_string};
use hikite_core::violation::step;

use crate::definition_reader::{DefinitionReader, RemainingArguments};
use crate::header::HeaderTemplates;
use crate::reference::{ArgumentReference, text};
use crate::template::TextTemplate;
use crate::url_template::write_pairs;

/// Maximum nesting depth.
const DEEPEST: usize = 64;

pub(crate) struct BodyTemplate {
    pub(crate) encoding: BodyEncoding,
    pub(crate) part: BodyPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEncoding {
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// Any other content type: a string is sent unchanged.
    Text,
}

pub(crate) enum BodyPart {
    Fixed(Raw),
    Value(ArgumentReference),
    Text(TextTemplate),
    Object(Vec<(Box<str>, Self)>),
    List(Vec<Self>),
    /// An object of all arguments that no template mentions.
    Rest(RemainingArguments),
}

impl BodyEncoding {
    pub(crate) fn of(headers: &HeaderTemplates) -> Self {
        let Some(kind) = headers.content_type() else { return Self::Json };
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            _ if kind.ends_with("+json") => Self::Json,
            _ => Self::Text,
        }
    }
}

impl BodyTemplate {
    /// Builds the body for these arguments. Returns `None` if the whole body is an absent value.
    pub(crate) fn fill(&self, arguments: &Object) -> Option<Bytes> {
        let mut out = Vec::with_capacity(128);
        if !self.part.write(arguments, &mut out) {
            return None;
        }
        match self.encoding {
            BodyEncoding::Json => Some(out.into()),
            BodyEncoding::Text => Some(Bytes::from(text(&Raw::trusted(out)).into_owned())),
            BodyEncoding::Form => {
                let mut form = String::with_capacity(out.len());
                let members = Raw::trusted(out).object().unwrap_or_default();
                members.iter().for_each(|(name, value)| write_pairs(name, value, &mut form));
                Some(Bytes::from(form).slice(usize::from(!members.is_empty())..))
            }
        }
    }
}

impl BodyPart {
    pub(crate) fn read(reader: &mut DefinitionReader<'_>, body: &Raw) -> Self {
        read(reader, "/http/body", body, 0)
    }

    pub(crate) fn is_text(&self) -> bool {
        match self {
            Self::Fixed(raw) => raw.bytes().first() == Some(&b'"'),
            Self::Value(_) | Self::Text(_) => true,
            Self::Object(_) | Self::List(_) | Self::Rest(_) => false,
        }
    }

    /// Appends the JSON. Returns `false` and appends nothing if the value is absent.
    fn write(&self, arguments: &Object, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Fixed(raw) => out.extend_from_slice(raw.bytes()),
            Self::Value(reference) => match reference.find(arguments) {
                Some(value) => out.extend_from_slice(value.bytes()),
                None => return false,
            },
            Self::Text(template) => {
                let mut text = String::new();
                if !template.render(arguments, |value, out| out.push_str(value), &mut text) {
                    return false;
                }
                write_string(&text, out);
            }
            Self::Object(members) => write_members(members, arguments, out),
            Self::List(items) => {
                out.push(b'[');
                let first = out.len();
                for item in items {
                    let start = out.len();
                    if start > first {
                        out.push(b',');
                    }
                    if !item.write(arguments, out) {
                        out.truncate(start);
                    }
                }
                out.push(b']');
            }
            Self::Rest(rest) => {
                let object =
                    rest.of(arguments).fold(Object::default(), |all, (name, value)| all.with(name, value.clone()));
                object.write(out);
            }
        }
        true
    }
}

fn write_members(members: &[(Box<str>, BodyPart)], arguments: &Object, out: &mut Vec<u8>) {
    out.push(b'{');
    let first = out.len();
    for (name, part) in members {
        let start = out.len();
        if start > first {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        if !part.write(arguments, out) {
            out.truncate(start);
        }
    }
    out.push(b'}');
}

fn read(reader: &mut DefinitionReader<'_>, pointer: &str, raw: &Raw, depth: usize) -> BodyPart {
    if depth > DEEPEST {
        reader.fault(pointer, format!("a body is at most {DEEPEST} levels deep"));
        return BodyPart::Fixed(Raw::null());
    }
    match raw.bytes().first() {
        Some(b'"') => {
            let Some(template) = reader.template(pointer, &text(raw)) else {
                return BodyPart::Fixed(Raw::null());
            };
            match (template.as_fixed(), template.as_single_reference()) {
                (Some(fixed), _) => BodyPart::Fixed(Raw::from(fixed)),
                (_, Some(reference)) => BodyPart::Value(reference.clone()),
                _ => BodyPart::Text(template),
            }
        }
        Some(b'{') => {
            let members = raw.object().unwrap_or_default();
            let members = members.iter().map(|(name, value)| {
                (name.into(), read(reader, &format!("{pointer}{}", step(name)), value, depth + 1))
            });
            fold_fixed(BodyPart::Object(members.collect()))
        }
        Some(b'[') => {
            let items = raw.items().unwrap_or_default().into_iter().enumerate();
            let items = items.map(|(at, item)| read(reader, &format!("{pointer}/{at}"), &item, depth + 1));
            fold_fixed(BodyPart::List(items.collect()))
        }
        // Copied, so that it does not keep the buffer of the whole definition alive.
        _ => BodyPart::Fixed(raw.copied()),
    }
}

/// Renders a part without references once.
fn fold_fixed(part: BodyPart) -> BodyPart {
    let is_fixed = |part: &BodyPart| matches!(part, BodyPart::Fixed(_));
    let all = match &part {
        BodyPart::Object(members) => members.iter().all(|(_, part)| is_fixed(part)),
        BodyPart::List(items) => items.iter().all(is_fixed),
        _ => false,
    };
    if !all {
        return part;
    }
    let mut out = Vec::new();
    part.write(&Object::default(), &mut out);
    BodyPart::Fixed(Raw::trusted(out))
}
