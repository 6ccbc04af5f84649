//! Unicode folding for the index: strips accents, and maps full-width Latin and half-width katakana to their usual
//! forms. A small table of our own, for indexed text only, never for display.

/// Katakana for the half-width forms from U+FF66 on, in Unicode order.
const KATAKANA: &str =
    "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン";
const VOICED: char = '\u{ff9e}';
const HALF_VOICED: char = '\u{ff9f}';

/// Base letters for U+00C0 to U+017F; a dot marks characters without one.
const LATIN: &str = "aaaaaaaceeeeiiiidnooooo.ouuuuy.saaaaaaaceeeeiiiidnooooo.ouuuuy.y\
    aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll\
    lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/// Calls `out` with every folded character. Combining accents are dropped.
pub(super) fn fold(text: &str, mut out: impl FnMut(char)) {
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter.is_ascii() => out(letter),
            '\u{ff01}'..='\u{ff5e}' => out(shifted(letter, 0xff01, 0x21)),
            '\u{3000}' => out(' '),
            '\u{0300}'..='\u{036f}' => {}
            '\u{ff66}'..='\u{ff9d}' => {
                let plain = KATAKANA.chars().nth(letter as usize - 0xff66).unwrap_or(letter);
                let mark = letters.next_if(|next| matches!(*next, VOICED | HALF_VOICED));
                out(mark.map_or(plain, |mark| with_mark(plain, mark)));
            }
            '\u{c0}'..='\u{17f}' => {
                let plain = LATIN.as_bytes().get(letter as usize - 0xc0).copied().map_or('.', char::from);
                let is_upper = letter.is_uppercase();
                out(match plain {
                    '.' => letter,
                    plain if is_upper => plain.to_ascii_uppercase(),
                    plain => plain,
                });
            }
            _ => out(letter),
        }
    }
}

/// Applies a voicing mark; in Unicode a voiced katakana follows its base.
fn with_mark(plain: char, mark: char) -> char {
    let step = match (plain, mark) {
        ('ウ', VOICED) => return 'ヴ',
        ('カ'..='ト' | 'ハ'..='ホ', VOICED) => 1,
        ('ハ'..='ホ', HALF_VOICED) => 2,
        _ => 0,
    };
    char::from_u32(plain as u32 + step).unwrap_or(plain)
}

fn shifted(letter: char, from: u32, to: u32) -> char {
    char::from_u32(letter as u32 - from + to).unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut folded = String::new();
        fold(text, |letter| folded.push(letter));
        assert_eq!(folded, expected);
    }

    #[test]
    fn letters_of_one_meaning_become_one() {
        check("ＧｉｔＨｕｂ　１２", "GitHub 12");
        check("ﾌｧｲﾙ ﾃﾞｰﾀﾍﾞｰｽ ﾊﾟｽ ｳﾞｧ", "ファイル データベース パス ヴァ");
        check("café Übersetzung naïve Łódź œ", "cafe Ubersetzung naive Lodz o");
        check("e\u{301}te\u{301}", "ete");
        check("データ検索 × ÷ Привет", "データ検索 × ÷ Привет");
    }

    #[test]
    fn the_table_reaches_its_last_letter() {
        assert_eq!(LATIN.len(), 0x180 - 0xc0);
        check("Ž ž Š ŵ ÿ þ", "Z z S w y þ");
    }
}
