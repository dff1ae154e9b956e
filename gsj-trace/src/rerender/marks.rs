//! What a template's source needs before a general Jinja engine takes it.

use std::borrow::Cow;

/// Makes line feeds of all line ends, as Jinja does, and turns `{% generation %}` marks, which only training code
/// understands, into scopes without effect (`with`: what is set inside stays inside, as in the original). The marks
/// of whitespace control are kept. Comments, raw blocks and the strings of expressions are left alone.
pub(super) fn prepare(source: &str) -> String {
    let source: Cow<'_, str> =
        if source.contains('\r') { source.replace("\r\n", "\n").replace('\r', "\n").into() } else { source.into() };
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_ref();
    while let Some(start) = rest.find('{') {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let length = match tag.as_bytes().get(1) {
            Some(b'%') => end_of(tag, "%}"),
            Some(b'{') => end_of(tag, "}}"),
            Some(b'#') => tag.find("#}").map(|at| at + 2),
            _ => Some(1),
        };
        // An open tag is a syntax error; the engine says so with the line.
        let Some(length) = length else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(length);
        rest = after;
        match word(tag) {
            Some("generation") => out.push_str(&tag.replacen("generation", "with", 1)),
            Some("endgeneration") => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            Some("raw") => {
                out.push_str(tag);
                let (text, after) = after.split_at(end_of_raw(after));
                out.push_str(text);
                rest = after;
            }
            _ => out.push_str(tag),
        }
    }
    out.push_str(rest);
    out
}

/// What stands in a `{% .. %}` tag, without the marks of whitespace control.
fn word(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix("{%")?.strip_suffix("%}")?;
    Some(inside.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace()))
}

/// Where the raw text in front of `{% endraw %}` ends.
fn end_of_raw(text: &str) -> usize {
    let ends = |(at, _): &(usize, &str)| {
        let tag = text.get(at + 2..).unwrap_or_default();
        tag.trim_start_matches(|c: char| c == '-' || c == '+' || c.is_whitespace()).starts_with("endraw")
    };
    text.match_indices("{%").find(ends).map_or(text.len(), |(at, _)| at)
}

/// The length of a tag up to and with its end, strings inside skipped.
fn end_of(tag: &str, end: &str) -> Option<usize> {
    let bytes = tag.as_bytes();
    let mut at = 2;
    let mut quote = None;
    while let Some(byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(open), _) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(*byte),
            (None, _) if bytes[at..].starts_with(end.as_bytes()) => return Some(at + end.len()),
            (None, _) => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lose_their_meaning_and_keep_their_dashes() {
        assert_eq!(
            prepare("a{%- generation %}b{% endgeneration -%}c{% if x %}d{%generation%}"),
            "a{%- with %}b{% endwith -%}c{% if x %}d{%with%}"
        );
    }

    #[test]
    fn what_only_looks_like_a_mark_is_left_alone() {
        for same in [
            "{# {% generation %} #}",
            "{{ '{% generation %}' }}",
            "{% raw %}{{ x {% generation %} {% endraw %}",
            "{% set x = '%} {% generation %}' %}",
            "{{ {'a': {'b': 1}} }} { } {",
            "{% generation",
        ] {
            assert_eq!(prepare(same), same);
        }
        assert_eq!(prepare("{% raw %}{%{% endraw %}{% generation %}"), "{% raw %}{%{% endraw %}{% with %}");
    }

    #[test]
    fn line_ends_are_line_feeds() {
        assert_eq!(prepare("a\r\nb\rc{{ '\r\n' }}"), "a\nb\nc{{ '\n' }}");
    }
}
