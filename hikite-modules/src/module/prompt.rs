//! MCP prompts of a module, with placeholders for arguments.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use serde_json::{Value, json};

use crate::file::{LocalizedText, PromptFile, TextLanguage};

#[derive(Debug)]
pub(crate) struct ServicePrompt {
    pub(crate) name: String,
    title: LocalizedText,
    description: LocalizedText,
    arguments: Vec<PromptArgument>,
    text: LocalizedText,
}

#[derive(Debug)]
struct PromptArgument {
    name: String,
    words: String,
    required: bool,
}

impl ServicePrompt {
    pub(crate) fn new(name: &str, file: &PromptFile) -> Result<Self, String> {
        let argument = |(name, short): (&str, &String)| {
            let (kind, words) = short.split_once('|').unwrap_or((short, ""));
            PromptArgument {
                name: name.to_owned(),
                words: words.trim().to_owned(),
                required: kind.trim().ends_with('!'),
            }
        };
        let arguments: Vec<PromptArgument> = file.arguments.iter().map(argument).collect();
        for (_, language) in TextLanguage::ALL {
            for place in file.text.get(language).split('{').skip(1) {
                let name = place.split('}').next().unwrap_or_default();
                if !arguments.iter().any(|argument| argument.name == name) {
                    return Err(format!("`{{{name}}}` is not an argument of the prompt"));
                }
            }
        }
        let (title, description) = (file.title.clone(), file.description.clone());
        Ok(Self { name: name.to_owned(), title, description, arguments, text: file.text.clone() })
    }

    pub(crate) fn definition(&self, language: TextLanguage) -> Raw {
        let argument = |argument: &PromptArgument| json!({ "name": argument.name, "description": argument.words, "required": argument.required });
        Raw::of(&json!({
            "name": self.name,
            "title": self.title.get(language),
            "description": self.description.get(language),
            "arguments": self.arguments.iter().map(argument).collect::<Vec<Value>>(),
        }))
    }

    pub(crate) fn result(&self, values: &Object, language: TextLanguage) -> Result<Raw, Error> {
        for argument in self.arguments.iter().filter(|argument| argument.required) {
            if values.text(&argument.name).unwrap_or_default().trim().is_empty() {
                let message = format!("Required parameter missing: {}", argument.name);
                return Err(Error::new(ErrorKind::Validation, message).hint(argument.words.clone()));
            }
        }
        let mut pieces = self.text.get(language).split('{');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            // Inserted values are not parsed for placeholders.
            let (name, after) = piece.split_once('}').unwrap_or(("", piece));
            text.push_str(&values.text(name).unwrap_or_default());
            text.push_str(after);
        }
        Ok(Raw::of(&json!({
            "description": self.description.get(language),
            "messages": [{ "role": "user", "content": { "type": "text", "text": text.trim() } }],
        })))
    }
}
