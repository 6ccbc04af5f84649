//! Decides character by character which ones to keep. The tables are deliberately broad: joiners and variation
//! selectors may follow anything that they could belong to, but never twice in a row, so no message can be encoded with
//! them.

/// Filters a text, remembering the last character that it kept.
#[derive(Default)]
pub(super) struct CharacterFilter {
    last: Option<char>,
    pub(super) removed: usize,
}

impl CharacterFilter {
    /// Returns `true` if the character is kept. `next` is the character after it.
    pub(super) fn is_kept(&mut self, character: char, next: Option<char>) -> bool {
        let stays = match character {
            '\t' | '\n' | '\r' => true,
            '\u{200c}' | '\u{200d}' => self.joins(character, next),
            '\u{fe0e}' | '\u{fe0f}' => {
                self.last.is_some_and(|last| is_emoji(last) || matches!(last, '0'..='9' | '#' | '*'))
            }
            '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => self.last.is_some_and(is_ideograph),
            _ => !is_hidden(character),
        };
        if stays {
            self.last = Some(character);
        } else {
            self.removed += 1;
        }
        stays
    }

    /// Returns `true` if the joiner is legitimate: between two emoji, or after letters of scripts that use joiners.
    fn joins(&self, character: char, next: Option<char>) -> bool {
        let Some(last) = self.last else { return false };
        let between_emoji = (is_emoji(last) || last == '\u{fe0f}') && next.is_some_and(is_emoji);
        uses_joiners(last) || character == '\u{200d}' && between_emoji
    }
}

/// Returns `true` for characters that are invisible or change the direction of text.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Soft hyphen, grapheme joiner, direction marks, fillers.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
            | '\u{ffa0}'
            | '\u{180b}'..='\u{180f}'
            // Zero-width characters and direction marks.
            | '\u{200b}'..='\u{200f}'
            // Bidirectional embeddings and overrides.
            | '\u{202a}'..='\u{202e}'
            // Word joiner, invisible operators, bidirectional isolates, deprecated format characters.
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            // Interlinear annotation marks.
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Tags and the unassigned code points around them.
            | '\u{e0000}'..='\u{e0fff}')
}

fn is_emoji(character: char) -> bool {
    matches!(character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{3030}' | '\u{303d}'
        | '\u{3297}' | '\u{3299}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}'
        | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3fffd}')
}

/// Returns `true` for letters of scripts that are written with joiners: Arabic and Persian, the Indic scripts, Burmese,
/// Khmer, Mongolian.
fn uses_joiners(character: char) -> bool {
    matches!(character, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}' | '\u{1820}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}
