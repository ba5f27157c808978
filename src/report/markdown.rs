//! Text in Markdown: escaped, as code, as a block.

/// Text as Markdown shows it literally, in one line, so that it fits into a table.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '[' | ']' | '\\' | '`' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Text as Markdown shows it literally in a paragraph of several lines, none of which begins a list, a heading or
/// another block.
pub fn prose(text: &str) -> String {
    text.lines().map(prose_line).collect::<Vec<_>>().join("\n")
}

/// A line of a paragraph, in which what would begin a block of another kind is escaped.
fn prose_line(line: &str) -> String {
    let text = escaped(line.trim());
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    match text[digits..].chars().next() {
        Some('#' | '+' | '-' | '=') if digits == 0 => format!("\\{text}"),
        Some('.' | ')') if digits > 0 => format!("{}\\{}", &text[..digits], &text[digits..]),
        _ => text,
    }
}

/// Text as code in a line, between more backticks than it contains in a row.
pub fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let ticks = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// The text of a file as a block of code in this language, between fences that no line of the text closes.
pub fn fenced(text: &str, language: &str) -> String {
    let ticks = "`".repeat(longest_run(text).max(3) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{ticks}{language}\n{text}{end}{ticks}")
}

/// The largest number of backticks in a row that a text contains.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_shows_texts_as_they_are() {
        assert_eq!(escaped("a|b\\|c `d` *e*"), "a\\|b\\\\\\|c \\`d\\` \\*e\\*");
        assert_eq!(escaped("\\[x\\](javascript:y)"), "\\\\\\[x\\\\\\](javascript:y)");
        assert_eq!(escaped("two\nlines <b>"), "two lines &lt;b&gt;");
        assert_eq!(prose("1. a\n# b\n---\n  - c\n12 d"), "1\\. a\n\\# b\n\\---\n\\- c\n12 d");
        assert_eq!(
            (code("a"), code("a`b"), code("``")),
            ("`a`".into(), "``a`b``".into(), "``` `` ```".into())
        );
        assert_eq!(fenced("x", "toml"), "````toml\nx\n````");
        assert_eq!(fenced("`````\n", ""), "``````\n`````\n``````");
    }
}
