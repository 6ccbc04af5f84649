//! HTML 4 entities by name, and numeric ones. Unknown names stay unchanged.

/// Appends text with its entities decoded.
pub(super) fn decode(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match entity(rest) {
            Some((c, length)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

/// Returns the entity at the start of a text and its length. No name is longer than eight characters.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.as_bytes().iter().take(12).position(|byte| *byte == b';')?;
    let name = text.get(1..end)?;
    let c = match name.strip_prefix('#') {
        Some(number) => numbered(number)?,
        None => named(name)?,
    };
    Some((c, end + 1))
}

fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'))
}

fn named(name: &str) -> Option<char> {
    if let Ok(at) = NAMED.binary_search_by(|(known, _)| (*known).cmp(name)) {
        return Some(NAMED[at].1);
    }
    let at = LATIN.iter().position(|known| *known == name)?;
    char::from_u32(160 + u32::try_from(at).ok()?)
}

/// Upper half of Latin-1, from 160 on.
#[rustfmt::skip]
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo",
    "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot",
    "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc",
    "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute",
    "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash",
    "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde",
    "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc",
    "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave",
    "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// All other entities, sorted by name.
#[rustfmt::skip]
const NAMED: [(&str, char); 157] = [
    ("Alpha", '\u{391}'), ("Beta", '\u{392}'), ("Chi", '\u{3a7}'), ("Dagger", '\u{2021}'),
    ("Delta", '\u{394}'), ("Epsilon", '\u{395}'), ("Eta", '\u{397}'), ("Gamma", '\u{393}'),
    ("Iota", '\u{399}'), ("Kappa", '\u{39a}'), ("Lambda", '\u{39b}'), ("Mu", '\u{39c}'), ("Nu", '\u{39d}'),
    ("OElig", '\u{152}'), ("Omega", '\u{3a9}'), ("Omicron", '\u{39f}'), ("Phi", '\u{3a6}'),
    ("Pi", '\u{3a0}'), ("Prime", '\u{2033}'), ("Psi", '\u{3a8}'), ("Rho", '\u{3a1}'), ("Scaron", '\u{160}'),
    ("Sigma", '\u{3a3}'), ("Tau", '\u{3a4}'), ("Theta", '\u{398}'), ("Upsilon", '\u{3a5}'),
    ("Xi", '\u{39e}'), ("Yuml", '\u{178}'), ("Zeta", '\u{396}'), ("alefsym", '\u{2135}'),
    ("alpha", '\u{3b1}'), ("amp", '\u{26}'), ("and", '\u{2227}'), ("ang", '\u{2220}'), ("apos", '\u{27}'),
    ("asymp", '\u{2248}'), ("bdquo", '\u{201e}'), ("beta", '\u{3b2}'), ("bull", '\u{2022}'),
    ("cap", '\u{2229}'), ("chi", '\u{3c7}'), ("circ", '\u{2c6}'), ("clubs", '\u{2663}'),
    ("cong", '\u{2245}'), ("crarr", '\u{21b5}'), ("cup", '\u{222a}'), ("dArr", '\u{21d3}'),
    ("dagger", '\u{2020}'), ("darr", '\u{2193}'), ("delta", '\u{3b4}'), ("diams", '\u{2666}'),
    ("empty", '\u{2205}'), ("emsp", '\u{2003}'), ("ensp", '\u{2002}'), ("epsilon", '\u{3b5}'),
    ("equiv", '\u{2261}'), ("eta", '\u{3b7}'), ("euro", '\u{20ac}'), ("exist", '\u{2203}'),
    ("fnof", '\u{192}'), ("forall", '\u{2200}'), ("frasl", '\u{2044}'), ("gamma", '\u{3b3}'),
    ("ge", '\u{2265}'), ("gt", '\u{3e}'), ("hArr", '\u{21d4}'), ("harr", '\u{2194}'),
    ("hearts", '\u{2665}'), ("hellip", '\u{2026}'), ("image", '\u{2111}'), ("infin", '\u{221e}'),
    ("int", '\u{222b}'), ("iota", '\u{3b9}'), ("isin", '\u{2208}'), ("kappa", '\u{3ba}'),
    ("lArr", '\u{21d0}'), ("lambda", '\u{3bb}'), ("lang", '\u{2329}'), ("larr", '\u{2190}'),
    ("lceil", '\u{2308}'), ("ldquo", '\u{201c}'), ("le", '\u{2264}'), ("lfloor", '\u{230a}'),
    ("lowast", '\u{2217}'), ("loz", '\u{25ca}'), ("lrm", '\u{200e}'), ("lsaquo", '\u{2039}'),
    ("lsquo", '\u{2018}'), ("lt", '\u{3c}'), ("mdash", '\u{2014}'), ("minus", '\u{2212}'),
    ("mu", '\u{3bc}'), ("nabla", '\u{2207}'), ("ndash", '\u{2013}'), ("ne", '\u{2260}'), ("ni", '\u{220b}'),
    ("notin", '\u{2209}'), ("nsub", '\u{2284}'), ("nu", '\u{3bd}'), ("oelig", '\u{153}'),
    ("oline", '\u{203e}'), ("omega", '\u{3c9}'), ("omicron", '\u{3bf}'), ("oplus", '\u{2295}'),
    ("or", '\u{2228}'), ("otimes", '\u{2297}'), ("part", '\u{2202}'), ("permil", '\u{2030}'),
    ("perp", '\u{22a5}'), ("phi", '\u{3c6}'), ("pi", '\u{3c0}'), ("piv", '\u{3d6}'), ("prime", '\u{2032}'),
    ("prod", '\u{220f}'), ("prop", '\u{221d}'), ("psi", '\u{3c8}'), ("quot", '\u{22}'),
    ("rArr", '\u{21d2}'), ("radic", '\u{221a}'), ("rang", '\u{232a}'), ("rarr", '\u{2192}'),
    ("rceil", '\u{2309}'), ("rdquo", '\u{201d}'), ("real", '\u{211c}'), ("rfloor", '\u{230b}'),
    ("rho", '\u{3c1}'), ("rlm", '\u{200f}'), ("rsaquo", '\u{203a}'), ("rsquo", '\u{2019}'),
    ("sbquo", '\u{201a}'), ("scaron", '\u{161}'), ("sdot", '\u{22c5}'), ("sigma", '\u{3c3}'),
    ("sigmaf", '\u{3c2}'), ("sim", '\u{223c}'), ("spades", '\u{2660}'), ("sub", '\u{2282}'),
    ("sube", '\u{2286}'), ("sum", '\u{2211}'), ("sup", '\u{2283}'), ("supe", '\u{2287}'),
    ("tau", '\u{3c4}'), ("there4", '\u{2234}'), ("theta", '\u{3b8}'), ("thetasym", '\u{3d1}'),
    ("thinsp", '\u{2009}'), ("tilde", '\u{2dc}'), ("trade", '\u{2122}'), ("uArr", '\u{21d1}'),
    ("uarr", '\u{2191}'), ("upsih", '\u{3d2}'), ("upsilon", '\u{3c5}'), ("weierp", '\u{2118}'),
    ("xi", '\u{3be}'), ("zeta", '\u{3b6}'), ("zwj", '\u{200d}'), ("zwnj", '\u{200c}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut out = String::new();
        decode(text, &mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn entities_are_resolved_and_what_is_none_stays() {
        check("&lt;p&gt; &amp;amp; &quot;&apos;", "<p> &amp; \"'");
        check("&nbsp;&yuml;&Auml;&auml;&alpha;&Alpha;&thetasym;&hearts;", "\u{a0}ÿÄäαΑϑ♥");
        check("&#26085;&#x672C;&#X8a9e;", "日本語");
        check("&#0;&#xD800;&#x110000;", "\u{fffd}\u{fffd}\u{fffd}");
        check("R&D; & &; &#; &#x; &nosuch; &amp &日本;", "R&D; & &; &#; &#x; &nosuch; &amp &日本;");
    }

    #[test]
    fn names_are_in_their_order() {
        assert!(NAMED.is_sorted_by_key(|(name, _)| *name));
        assert_eq!(LATIN.len() + NAMED.len(), 252 + 1);
    }
}
