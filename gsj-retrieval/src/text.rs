//! From the text of a page to its units (sentences) and their terms.
//!
//! Everything here looks at one page at a time, so nothing can depend on a later page.

use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashMap;
use std::ops::Range;

/// The code that says what a term is, for fingerprints.
pub(crate) const CODE: &str = include_str!("text.rs");

/// Words before a full stop that do not end a sentence.
const ABBREVIATIONS: [&str; 26] = [
    "abs", "art", "aufl", "bd", "bzw", "ca", "co", "dr", "etc", "ff", "hr", "inc", "mr", "mrs", "ms", "nr", "no",
    "prof", "rn", "sog", "st", "str", "vgl", "vs", "z.b", "zzgl",
];

/// What a German ordinal ("3. Mai", "2. Instanz") stands before: its full stop ends no sentence.
const COUNTED: [&str; 19] = [
    "januar",
    "jänner",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
    "instanz",
    "senat",
    "zivilsenat",
    "strafsenat",
    "kammer",
    "zivilkammer",
];

/// Splits a text into units: sentences, with headings, list items and table rows as units of their own.
///
/// The ranges are byte ranges in ascending order; between them lie only blanks.
pub(crate) fn units(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim();
        let fresh = body.is_empty() || is_marked(body);
        if fresh {
            push(text, start..line_start, &mut found);
            start = line_start;
        }
        if body.is_empty() || body.starts_with(['#', '|']) {
            // A heading or a row ends with its line, a blank line ends whatever stood before it.
            push(text, line_start..line_start + line.len(), &mut found);
            start = line_start + line.len();
        }
        line_start += line.len();
    }
    push(text, start..text.len(), &mut found);
    found.into_iter().flat_map(|block| sentences(text, block)).collect()
}

fn push(text: &str, range: Range<usize>, into: &mut Vec<Range<usize>>) {
    if text.get(range.clone()).is_some_and(|part| !part.trim().is_empty()) {
        into.push(range);
    }
}

/// Tells whether a line begins something new whatever the line before was: heading, row, or list item.
fn is_marked(line: &str) -> bool {
    if line.starts_with(['#', '|', '>']) {
        return true;
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let bullet =
        if rest.len() < line.len() { rest.strip_prefix(['.', ')']) } else { rest.strip_prefix(['-', '*', '+']) };
    bullet.is_some_and(|after| after.starts_with([' ', '\t']))
}

/// Splits one block at sentence ends.
fn sentences(text: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let Some(body) = text.get(block.clone()) else { return Vec::new() };
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        while chars.next_if(|(_, next)| matches!(next, '"' | '\'' | ')' | ']' | '»' | '«' | '“' | '”' | '’')).is_some()
        {
        }
        let Some(&(next_at, next)) = chars.peek() else { break };
        if !next.is_whitespace()
            || (c == '.' && !ends_sentence(body.get(start..at).unwrap_or(""), body.get(next_at..).unwrap_or("")))
        {
            continue;
        }
        found.push(block.start + start..block.start + next_at);
        start = next_at;
    }
    if body.get(start..).is_some_and(|rest| !rest.trim().is_empty()) {
        found.push(block.start + start..block.end);
    }
    found
}

/// Decides whether a full stop between `before` and `after` ends a sentence.
fn ends_sentence(before: &str, after: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("").trim_start_matches(['(', '[', '"', '„', '“']);
    let lower = word.to_lowercase();
    if ABBREVIATIONS.contains(&lower.as_str()) || (word.chars().count() == 1 && word.chars().all(char::is_alphabetic)) {
        return false;
    }
    let ordinal = !word.is_empty() && word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit());
    let next = after.trim_start();
    let counted: String = next.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let continues = next.starts_with(char::is_lowercase) || (ordinal && COUNTED.contains(&counted.as_str()));
    !continues
}

/// Words, folded, that say little of what a text is about; English and German.
const FUNCTION_WORDS: [&str; 205] = [
    "a", "aber", "about", "after", "all", "alle", "als", "am", "an", "and", "any", "are", "as", "at", "auch", "auf",
    "aus", "be", "been", "before", "bei", "beim", "being", "between", "bin", "bist", "but", "by", "can", "could", "da",
    "das", "dass", "dem", "den", "der", "des", "dich", "did", "die", "diese", "diesem", "diesen", "dieser", "dieses",
    "do", "does", "du", "durch", "during", "each", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es",
    "for", "from", "fur", "gegen", "haben", "had", "has", "hat", "hatte", "hatten", "have", "he", "her", "here",
    "hier", "him", "his", "how", "i", "ich", "if", "ihm", "ihn", "ihr", "ihre", "ihrem", "ihren", "ihrer", "im", "in",
    "ins", "into", "is", "ist", "it", "its", "jede", "jeder", "jedes", "kann", "kein", "keine", "keinen", "konnte",
    "man", "may", "me", "mich", "might", "mir", "mit", "must", "my", "nach", "nicht", "no", "noch", "nor", "not",
    "nur", "oder", "of", "ohne", "on", "or", "our", "out", "over", "said", "say", "says", "schon", "sein", "seine",
    "seinem", "seinen", "seiner", "shall", "she", "should", "sich", "sie", "sind", "so", "soll", "sollte", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "uber",
    "um", "und", "under", "uns", "unter", "up", "us", "vom", "von", "vor", "wann", "war", "waren", "warum", "was",
    "we", "welche", "welcher", "welches", "wenn", "wer", "werden", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "wie", "will", "wir", "wird", "with", "wo", "would", "wurde", "wurden", "you", "your",
    "zu", "zum", "zur",
];

/// Whether a word, folded, is a function word.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

/// How many stems are kept at hand.
const KEPT_STEMS: usize = 1 << 17;

/// Brings words to their stems.
///
/// A page's language isn't asked for: every word is stemmed as English, then as German, on both sides, so a term is the
/// same wherever it stands. What holds a digit stays as it is.
pub(crate) struct Analyzer {
    english: Stemmer,
    german: Stemmer,
    stems: HashMap<Box<str>, Box<str>>,
}

impl Default for Analyzer {
    fn default() -> Self {
        let of = Stemmer::create;
        Self { english: of(Algorithm::English), german: of(Algorithm::German), stems: HashMap::new() }
    }
}

impl Analyzer {
    /// Calls `each` with every term of `text` in order of occurrence.
    pub(crate) fn terms(&mut self, text: &str, mut each: impl FnMut(&str)) {
        self.each_word(text, |_, term| each(term));
    }

    /// Calls `each` with every word, folded, and its term.
    pub(crate) fn each_word(&mut self, text: &str, mut each: impl FnMut(&str, &str)) {
        words(text, |word| {
            if word.bytes().any(|byte| byte.is_ascii_digit()) {
                each(word, word);
                return;
            }
            if let Some(stem) = self.stems.get(word) {
                each(word, stem);
                return;
            }
            let stem = self.german.stem(&self.english.stem(word)).into_owned();
            each(word, &stem);
            if self.stems.len() < KEPT_STEMS {
                self.stems.insert(word.into(), stem.into());
            }
        });
    }
}

/// Calls `each` with every word of `text` in order of occurrence.
///
/// A word is a run of letters and digits, case and accents folded. Runs that are joined without a blank by `-`, `_`, `/`,
/// `.` or `:` and hold a digit somewhere are an identifier: each run is a word, and so is the whole, joined by `-`.
fn words(text: &str, mut each: impl FnMut(&str)) {
    let mut whole = String::new();
    let mut run = String::new();
    let mut runs = 0_usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() || (is_silent(c) && !run.is_empty()) {
            fold(c, &mut run);
            continue;
        }
        if !run.is_empty() {
            each(&run);
            if runs > 0 {
                whole.push('-');
            }
            whole.push_str(&run);
            run.clear();
            runs += 1;
        }
        let joins = matches!(c, '-' | '_' | '/' | '.' | ':' | '\u{2010}' | '\u{2011}')
            && chars.peek().is_some_and(|next| next.is_alphanumeric());
        if runs > 0 && !joins {
            finish(&mut whole, &mut runs, &mut each);
        }
    }
    if !run.is_empty() {
        each(&run);
        if runs > 0 {
            whole.push('-');
        }
        whole.push_str(&run);
        runs += 1;
    }
    finish(&mut whole, &mut runs, &mut each);
}

fn finish(whole: &mut String, runs: &mut usize, each: &mut impl FnMut(&str)) {
    if *runs > 1 && whole.bytes().any(|byte| byte.is_ascii_digit()) {
        each(whole);
    }
    whole.clear();
    *runs = 0;
}

/// Whether a character stands within a word and is no letter of its own: a mark on the letter before it, or a place where
/// the word may be broken.
fn is_silent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{ad}')
}

/// Lower case, and the letters that English and German texts write with and without marks.
fn fold(c: char, into: &mut String) {
    for lower in c.to_lowercase() {
        match lower {
            'à'..='å' | 'ā' | 'ă' | 'ą' => into.push('a'),
            'ç' | 'ć' | 'č' => into.push('c'),
            'è'..='ë' | 'ē' | 'ę' | 'ě' => into.push('e'),
            'ì'..='ï' | 'ī' | 'ı' => into.push('i'),
            'ñ' | 'ń' | 'ň' => into.push('n'),
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => into.push('o'),
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => into.push('u'),
            'ý' | 'ÿ' => into.push('y'),
            'ś' | 'š' | 'ş' => into.push('s'),
            'ź' | 'ż' | 'ž' => into.push('z'),
            'ł' => into.push('l'),
            'ß' => into.push_str("ss"),
            'æ' => into.push_str("ae"),
            'œ' => into.push_str("oe"),
            silent if is_silent(silent) => {}
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word| found.push(word.to_owned()));
        found
    }

    fn all_units(text: &str) -> Vec<&str> {
        units(text).into_iter().map(|range| text[range].trim()).collect()
    }

    #[test]
    fn identifiers_are_terms_whole_and_in_parts() {
        assert_eq!(all_words("Permit SN-0100031, no."), ["permit", "sn", "0100031", "sn-0100031", "no"]);
        assert_eq!(all_words("the well-known case"), ["the", "well", "known", "case"], "no digit, no identifier");
        assert_eq!(all_words("3 O 12/24"), ["3", "o", "12", "24", "12-24"]);
    }

    #[test]
    fn case_and_accents_fold() {
        assert_eq!(all_words("Görlitz STRASSE Straße é"), ["gorlitz", "strasse", "strasse", "e"]);
        let parted = "Go\u{308}rlitz E\u{301}\u{323}-1 Ver\u{ad}trag \u{301}x \u{ad}";
        assert_eq!(all_words(parted), ["gorlitz", "e", "1", "e-1", "vertrag", "x"]);
    }

    #[test]
    fn forms_of_a_word_are_one_term_and_identifiers_stay() {
        let mut analyzer = Analyzer::default();
        let mut stems = |text: &str| {
            let mut found = Vec::new();
            analyzer.terms(text, |term| found.push(term.to_owned()));
            found
        };
        for (one, other) in
            [("permit", "permits"), ("inspection", "Inspections"), ("Vertrag", "Verträge"), ("Gericht", "gerichtes")]
        {
            assert_eq!(stems(one), stems(other), "{one} and {other}");
        }
        assert_ne!(stems("harbour"), stems("harvest"));
        assert_eq!(stems("SN-0100031s"), ["sn", "0100031s", "sn-0100031s"]);
    }

    #[test]
    fn function_words_are_sorted_and_folded() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(FUNCTION_WORDS.iter().all(|word| all_words(word) == [*word]));
        assert!(is_function_word("der") && is_function_word("which") && !is_function_word("crate"));
    }

    #[test]
    fn sentences_end_at_stops_and_not_at_abbreviations_or_dates() {
        assert_eq!(
            all_units("Dr. Falk saw it. She left on 3. Mai with Art. 5 in hand! Why? See Nr. 7. Then go."),
            ["Dr. Falk saw it.", "She left on 3. Mai with Art. 5 in hand!", "Why?", "See Nr. 7.", "Then go."]
        );
    }

    #[test]
    fn headings_rows_and_items_are_units_and_wrapped_lines_are_not() {
        let text = "## Page 3\nOne sentence that\nwraps. Another\n\n- item a\n- item b\n| x | y |\nlast";
        assert_eq!(
            all_units(text),
            ["## Page 3", "One sentence that\nwraps.", "Another", "- item a", "- item b", "| x | y |", "last"]
        );
    }

    #[test]
    fn every_byte_that_is_no_blank_lies_in_exactly_one_unit() {
        for text in ["", "\n\n", "a", "a.b. c", "ä. Ö\r\n# h\r\nx. (y.) Z", "1. x\n2) y\n* z", "…?! \u{2028} q"] {
            let mut covered = 0;
            for range in units(text) {
                assert!(text[covered..range.start].trim().is_empty(), "gap in {text:?}");
                covered = range.end;
            }
            assert!(text[covered..].trim().is_empty(), "tail of {text:?}");
        }
    }
}
