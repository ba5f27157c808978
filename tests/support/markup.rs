//! Markdown and HTML, read as far as tests need it.

use std::ops::Range;

/// Stands for what is left out of a text.
pub const LEFT_OUT: char = '\u{fffc}';

/// A text without some of its parts, in their order; the ends of their lines stay.
pub fn without(text: &str, parts: impl IntoIterator<Item = Range<usize>>) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for part in parts {
        out.push_str(&text[at..part.start]);
        out.push(LEFT_OUT);
        out.extend(text[part.clone()].chars().filter(|c| *c == '\n'));
        out.push(LEFT_OUT);
        at = part.end;
    }
    out + &text[at..]
}

fn ticks(text: &str) -> usize {
    text.bytes().take_while(|b| *b == b'`').count()
}

/// A fenced block of Markdown.
pub struct Block<'a> {
    pub language: &'a str,
    pub text: &'a str,
    whole: Range<usize>,
}

/// The fenced blocks of a page of Markdown.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in page.split_inclusive('\n') {
        let (text, next) = (line.trim(), at + line.len());
        match open {
            None if ticks(text) >= 3 => open = Some((text, at, next)),
            Some((fence, begin, inside))
                if ticks(text) >= ticks(fence) && ticks(text) == text.len() =>
            {
                let language = fence.trim_start_matches('`');
                found.push(Block { language, text: &page[inside..at], whole: begin..next });
                open = None;
            }
            _ => {}
        }
        at = next;
    }
    assert!(open.is_none(), "a block does not end: {open:?}");
    found
}

/// Markdown without code: neither fenced blocks nor code spans.
pub fn without_code(page: &str) -> String {
    let prose = without(page, blocks(page).into_iter().map(|block| block.whole));
    without(&prose, spans(&prose))
}

/// The code spans of a text without blocks. A span ends in its paragraph, with as many
/// backticks as it begins; a backtick that nothing closes, or after a backslash, is punctuation.
fn spans(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(begin) = text[at..].find(['`', '\\']).map(|i| at + i) {
        let count = ticks(&text[begin..]);
        let inside = begin + count;
        if count == 0 {
            at = inside + 1 + text[inside + 1..].chars().next().map_or(0, char::len_utf8);
            continue;
        }
        let end = text[inside..].find("\n\n").map_or(text.len(), |i| inside + i);
        let runs = text[inside..end].match_indices('`').map(|(i, _)| inside + i);
        let mut closing =
            runs.filter(|i| !text[..*i].ends_with('`') && ticks(&text[*i..]) == count);
        at = closing.next().map_or(inside, |close| close + count);
        found.extend((at > inside).then_some(begin..at));
    }
    found
}

/// A tag of a page of HTML.
pub struct Tag<'a> {
    /// With its slash if it closes an element; `!--` of a comment.
    pub name: &'a str,
    pub attributes: Vec<(&'a str, &'a str)>,
    pub whole: Range<usize>,
}

impl<'a> Tag<'a> {
    pub fn value(&self, attribute: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(name, _)| *name == attribute).map(|(_, value)| *value)
    }
}

/// The tags of a page. What stands in scripts is no markup, and ends at the first `</script`,
/// as browsers read it.
pub fn tags(page: &str) -> Vec<Tag<'_>> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(begin) = page[at..].find('<').map(|i| at + i) {
        let rest = &page[begin..];
        let end =
            if rest.starts_with("<!--") { rest.find("-->").map(|i| i + 3) } else { tag_end(rest) };
        let whole = begin..begin + end.unwrap_or(rest.len());
        let tag = page[whole.start + 1..whole.end].trim_end_matches('>');
        let name = tag.split_whitespace().next().unwrap_or_default();
        let (mut attributes, mut inside) = (Vec::new(), tag);
        while let Some((before, after)) = inside.split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a value ends");
            attributes.push((before.split_whitespace().next_back().unwrap_or_default(), value));
            inside = after;
        }
        at = whole.end;
        if ["script", "style"].contains(&name) {
            at += page[at..].find(&format!("</{name}")).unwrap_or(page.len() - at);
        }
        all.push(Tag { name, attributes, whole });
    }
    all
}

/// The length of the tag that begins a text.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(i + 1),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    None
}
