//! The text of a manifest as a tree in which every key and value knows where
//! it was written, and the diagnostics that point there.

use super::source::Source;
use exactfed_core::words::nearest;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Bytes of the manifest's text.
    Text(usize, usize),
    /// The override of this number, from 0, among those of the command line.
    Override(usize),
}

/// A value of the tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the value was written.
    pub place: Place,
    /// The value that the manifest or an override wrote.
    pub value: Value,
}

/// A value of TOML, with the places of what is in it.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string, whose lines end as on Unix, however the file has them.
    String(String),
    /// An integer of 64 bits.
    Integer(i64),
    /// An integer that 64 bits do not hold, which no setting takes.
    LongInteger {
        /// Whether it is below the smallest integer of 64 bits, and not above the largest.
        is_negative: bool,
    },
    /// A number with a point or an exponent.
    Float(f64),
    /// true or false.
    Boolean(bool),
    /// A date or a time, which no setting takes.
    Datetime,
    /// An array.
    Array(Vec<Node>),
    /// A table.
    Table(Vec<KeyValue>),
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// The key as it was written.
    pub key: String,
    /// Where the key was written.
    pub place: Place,
    /// The value of the key, with its place.
    pub node: Node,
}

impl Value {
    /// What kind of value this is, in words with their article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) | Self::LongInteger { .. } => "an integer",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Datetime => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    /// The node at a dotted path, in which the items of arrays have their numbers from 0 as keys; `None` if there is
    /// none.
    pub fn find(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, Self::child)
    }

    /// The node of a key if this is a table, or of an index if this is an array; `None` if there is none.
    pub fn child(&self, part: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|e| e.key == part).map(|e| &e.node),
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The keys of a table, in the order of the text; none if this is no table.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries: &[KeyValue] =
            if let Value::Table(entries) = &self.value { entries } else { &[] };
        entries.iter().map(|entry| entry.key.as_str())
    }
}

/// The dotted path of a key in the table at a path. Either may be empty, which leaves the other one.
pub fn below(path: &str, key: &str) -> String {
    let dot = if path.is_empty() || key.is_empty() { "" } else { "." };
    format!("{path}{dot}{key}")
}

/// One thing that is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Where it is wrong; `None` if it is about the manifest as a whole.
    pub place: Option<Place>,
    /// The dotted path of the key that is wrong; empty if it is about the manifest as a whole.
    pub path: String,
    /// What is wrong with the manifest.
    pub message: String,
    /// What is printed after the carets that mark the place, such as "did you mean `seed`?".
    pub hint: Option<String>,
    /// The names or values that are allowed, as a list.
    pub allowed: Option<String>,
}

impl Diagnostic {
    /// A diagnostic at a place, about the key at a path, without a hint and without what is allowed.
    pub fn new(place: Option<Place>, path: &str, message: impl Into<String>) -> Self {
        let path = path.to_owned();
        let message = message.into();
        Self { place, path, message, hint: None, allowed: None }
    }

    /// Adds the names or values that are allowed, which are printed below the place.
    pub fn allowing(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Adds a hint, which says what to write instead.
    pub fn hinting(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Adds the names that are allowed in place of an unknown one, and as a hint the one that is nearest to it, if any
    /// is near.
    pub fn naming(self, unknown: &str, allowed: &[&str]) -> Self {
        self.hinting(nearest(unknown, allowed)).allowing(allowed.join(", "))
    }
}

/// Everything that is wrong with a manifest, ready to be printed.
#[derive(Debug)]
pub struct Rejected {
    /// The manifest that is refused.
    pub source: Box<Source>,
    /// At least one diagnostic, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Rejected {
    /// Refuses a manifest with these diagnostics, of which there must be one or more. They are put into the order of
    /// the text, equal ones once: first those about the manifest as a whole, and last those about overrides.
    pub fn new(source: &Source, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by(|a, b| a.place.cmp(&b.place));
        let mut known = HashSet::new();
        diagnostics.retain(|diagnostic| known.insert(diagnostic.clone()));
        Self { source: Box::new(source.clone()), diagnostics }
    }
}

/// The most diagnostics that are printed: a long axis may have a mistake in each value.
const MOST_PRINTED: usize = 100;

impl std::error::Error for Rejected {}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().take(MOST_PRINTED).enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            let mut text = String::new();
            self.write_diagnostic(&mut text, diagnostic)?;
            // A terminal would obey control characters, and a message repeats parts of the manifest.
            f.write_str(
                &text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "\u{fffd}"),
            )?;
        }
        match self.diagnostics.len().saturating_sub(MOST_PRINTED) {
            0 => Ok(()),
            more => writeln!(f, "\nerror: and {more} more, which are not printed"),
        }
    }
}

impl Rejected {
    /// Line and column of a diagnostic in the manifest's text, from 1 in characters; `None` where
    /// it is about the manifest as a whole or about an override. The errors of Python have both.
    pub fn position(&self, diagnostic: &Diagnostic) -> Option<(usize, usize)> {
        let Some(Place::Text(from, _)) = diagnostic.place else { return None };
        let (line, column, _) = locate(&self.source.text, from);
        Some((line, column))
    }

    /// Writes one diagnostic in the form of compilers: the message, the place, the line with carets below the part
    /// that is wrong, and what is allowed.
    fn write_diagnostic(&self, f: &mut impl fmt::Write, d: &Diagnostic) -> fmt::Result {
        writeln!(f, "error: {}", d.message)?;
        let path = if d.path.is_empty() { String::new() } else { format!(" ({})", d.path) };
        let hint = d.hint.as_deref().unwrap_or_default();
        let margin = match &d.place {
            Some(Place::Text(from, to)) => {
                let (line, column, text) = locate(&self.source.text, *from);
                let (shift, text) = excerpt(column, text);
                let number = line.to_string();
                let pad = " ".repeat(number.len());
                let room = text.chars().count() + 1 - shift.min(text.chars().count());
                let width = self.source.text[*from..*to].chars().count().clamp(1, room.max(1));
                let carets = "^".repeat(width);
                let before = " ".repeat(shift - 1);
                writeln!(f, "{pad}--> {}:{line}:{column}{path}", self.source.name)?;
                writeln!(f, "{pad} |\n{number} | {text}")?;
                writeln!(f, "{}", format!("{pad} | {before}{carets} {hint}").trim_end())?;
                pad
            }
            Some(Place::Override(i)) => {
                writeln!(f, " --> from --set {}{path}", self.source.overrides[*i])?;
                if !hint.is_empty() {
                    writeln!(f, "  | {hint}")?;
                }
                " ".into()
            }
            None => {
                writeln!(f, " --> {}{path}", self.source.name)?;
                " ".into()
            }
        };
        match &d.allowed {
            Some(allowed) => writeln!(f, "{margin} = allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

/// The line and the column of a byte of a text, both from 1 and the column in characters, and the text of this line. A
/// character must begin at the byte, or the text end there.
fn locate(text: &str, byte: usize) -> (usize, usize, &str) {
    let start = text[..byte].rfind('\n').map_or(0, |i| i + 1);
    let line = text[..byte].matches('\n').count() + 1;
    let column = text[start..byte].chars().count() + 1;
    (line, column, text[start..].lines().next().unwrap_or_default())
}

/// The most characters of a line that a message repeats.
const MOST_CHARACTERS: usize = 160;

/// The part of a long line that a message shows, with dots at its ends, and the column within this part; a line that is
/// short enough is shown as it is. Columns are counted in characters from 1. A manifest that a program wrote may be one
/// line of megabytes.
fn excerpt(column: usize, text: &str) -> (usize, String) {
    if text.chars().count() <= MOST_CHARACTERS {
        return (column, text.to_owned());
    }
    let from = column.saturating_sub(MOST_CHARACTERS / 2);
    let part: String = text.chars().skip(from).take(MOST_CHARACTERS).collect();
    (column - from + 1, format!("…{part}…"))
}

/// The tree of a manifest's text, with its overrides applied.
///
/// # Errors
/// All syntax errors; in a text without any, all overrides that cannot be applied, because they are not `key=value` or
/// lead into a value that is no table.
pub fn parse(source: &Source) -> Result<Node, Rejected> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        let found = errors.iter().map(|error| {
            let span = error.span().map(|s| clip(&source.text, s));
            let message = match &span {
                Some(Place::Text(from, to)) => two_values(&source.text[*from..*to]),
                _ => None,
            };
            let message = message.unwrap_or_else(|| {
                error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ")
            });
            Diagnostic::new(span, "", format!("not valid TOML: {message}"))
        });
        return Err(Rejected::new(source, found.collect()));
    }
    let start = table.span().start;
    let value = convert_table(table.get_ref(), None);
    let mut root = Node { place: Place::Text(start, start), value };
    let overrides = source.overrides.iter().enumerate();
    let wrong: Vec<Diagnostic> =
        overrides.filter_map(|(i, text)| apply(&mut root, i, text).err()).collect();
    if wrong.is_empty() { Ok(root) } else { Err(Rejected::new(source, wrong)) }
}

/// A message in place of the parser's where a comma or a line break is missing. The parser then takes a value and the
/// text that follows it, such as `1 2`, for one string without quotes. `None` if the text does not begin with a value,
/// or nothing follows it.
fn two_values(text: &str) -> Option<String> {
    let (first, rest) = text.split_once(char::is_whitespace)?;
    let is_value = first.parse::<f64>().is_ok() || ["true", "false"].contains(&first);
    let rest = rest.trim_start();
    let wanted = "a comma or the end of the line";
    (is_value && !rest.is_empty())
        .then(|| format!("after the value `{first}` {wanted} is missing, before `{rest}`"))
}

/// The place of a span, whose ends the parser may put within a character.
fn clip(text: &str, span: Range<usize>) -> Place {
    let [start, end] = [span.start, span.end].map(|byte| text.floor_char_boundary(byte));
    Place::Text(start, end.max(start))
}

/// The place of a span of the manifest's text, or the override of this number if the span is in one. Overrides are
/// numbered from 0; `None` stands for the text.
fn place(span: Range<usize>, number: Option<usize>) -> Place {
    number.map_or(Place::Text(span.start, span.end), Place::Override)
}

/// The table that the parser read from the manifest's text (`None`), or from the override of this number.
fn convert_table(table: &DeTable<'_>, number: Option<usize>) -> Value {
    let entries = table.iter().map(|(key, value)| KeyValue {
        key: key.get_ref().to_string(),
        place: place(key.span(), number),
        node: convert(value, number),
    });
    Value::Table(entries.collect())
}

/// The node that the parser read from the manifest's text (`None`), or from the override of this number.
fn convert(node: &toml::Spanned<DeValue<'_>>, number: Option<usize>) -> Node {
    let value = match node.get_ref() {
        // Paragraphs and lines of a text are the same in a file that has line ends of Windows, as a clone there may.
        DeValue::String(text) => Value::String(text.replace("\r\n", "\n")),
        DeValue::Integer(digits) => {
            let is_negative = digits.as_str().starts_with('-');
            let value = i64::from_str_radix(digits.as_str(), digits.radix());
            value.map_or(Value::LongInteger { is_negative }, Value::Integer)
        }
        DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| convert(item, number)).collect())
        }
        DeValue::Table(table) => convert_table(table, number),
    };
    Node { place: place(node.span(), number), value }
}

/// The most parts of an override's key. The tree is walked by recursion, and the text's own depth is
/// limited by the TOML parser.
const MOST_PARTS: usize = 32;

/// Applies the override of this number, `--set key=value`. The key is a dotted path, in which an array of tables
/// without the number of a table means all of its tables. The value is TOML, or a text without quotes.
fn apply(root: &mut Node, number: usize, text: &str) -> Result<(), Diagnostic> {
    let place = Some(Place::Override(number));
    let Some((key, value)) = text.split_once('=') else {
        return Err(Diagnostic::new(place, "", "an override is key=value")
            .allowing("--set seed=7, --set problem.garnet.clients=10"));
    };
    let key = key.trim();
    let value = value.trim();
    // Where the value is not TOML, it is the text as it is; TOML would have to escape some of its characters.
    let mut node =
        Node { place: Place::Override(number), value: Value::String(value.replace("\r\n", "\n")) };
    let entry = format!("x = {value}");
    let (table, errors) = DeTable::parse_recoverable(&entry);
    if errors.is_empty() {
        for (name, value) in table.get_ref() {
            if name.get_ref() != "x" {
                let message = format!(
                    "an override is one key=value, and after a line break this one sets `{}` too",
                    name.get_ref()
                );
                return Err(Diagnostic::new(place, key, message)
                    .hinting(Some("write a --set for each key".into())));
            }
            node = convert(value, Some(number));
        }
    }
    let path: Vec<&str> = key.split('.').collect();
    if path.iter().any(|part| part.is_empty()) {
        return Err(Diagnostic::new(place, key, "the key is not a dotted path"));
    }
    if path.len() > MOST_PARTS {
        let message = format!("the key has {} parts; at most {MOST_PARTS} are allowed", path.len());
        return Err(Diagnostic::new(place, path[0], message));
    }
    set(root, &path, &node)
}

/// Puts a node at the path of these parts below `target`, in place of what is there. Tables that the path needs are
/// made. An array on the path whose next part is no number means all of its items. By this overrides and the candidates
/// of tuned settings enter the tree.
///
/// # Errors
/// If the path leads through a value that is neither a table nor an array, or to an item that an array does not have.
pub fn set(target: &mut Node, path: &[&str], node: &Node) -> Result<(), Diagnostic> {
    let wrong =
        |first: &str, message| Err(Diagnostic::new(Some(node.place.clone()), first, message));
    let Some((first, rest)) = path.split_first() else {
        *target = node.clone();
        return Ok(());
    };
    match &mut target.value {
        Value::Table(entries) => {
            let found = entries.iter_mut().find(|e| e.key == *first);
            if let Some(entry) = found {
                return set(&mut entry.node, rest, node);
            }
            let place = node.place.clone();
            let mut new = Node { place: place.clone(), value: Value::Table(Vec::new()) };
            set(&mut new, rest, node)?;
            entries.push(KeyValue { key: (*first).to_owned(), place, node: new });
            Ok(())
        }
        Value::Array(items) => match first.parse::<usize>() {
            Ok(i) if i < items.len() => set(&mut items[i], rest, node),
            Ok(i) => {
                wrong(first, format!("there is no entry {i}; the first of {} is 0", items.len()))
            }
            Err(_) => items.iter_mut().try_for_each(|item| set(item, path, node)),
        },
        other => wrong(first, format!("`{first}` cannot be set inside {}", other.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of a manifest do not depend on the line ends of its file.
    #[test]
    fn line_ends_of_windows_are_those_of_unix() {
        let text = "finding = \"\"\"\nOne.\n\nTwo.\n\"\"\"\nanalysis = '''a\nb'''\n";
        for file in [text.to_owned(), text.replace('\n', "\r\n")] {
            let overrides = vec!["question = \"a?\\r\\nb?\"".to_owned()];
            let root = parse(&Source { text: file, overrides, ..Source::default() }).unwrap();
            for (key, wanted) in
                [("finding", "One.\n\nTwo.\n"), ("analysis", "a\nb"), ("question", "a?\nb?")]
            {
                let Some(Value::String(value)) = root.find(key).map(|node| &node.value) else {
                    panic!("{key} is a string");
                };
                assert_eq!(value, wanted);
            }
        }
    }

    /// The tree of an empty manifest with one override, or the messages of what is wrong with it.
    fn overridden(text: &str) -> Result<Node, Vec<String>> {
        let source = Source { overrides: vec![text.to_owned()], ..Source::default() };
        parse(&source).map_err(|e| e.diagnostics.into_iter().map(|d| d.message).collect())
    }

    #[test]
    fn an_override_without_quotes_is_the_text_as_it_was_given() {
        let texts = [
            "5 %",
            "5\u{a0}%",
            "soft\u{ad}hyphen",
            "\u{1f469}\u{200d}\u{1f52c} \u{301}",
            "a \"b\" 'c' \\d",
            "bell\u{7}, delete\u{7f}",
            "two\nlines",
            "",
        ];
        for text in texts {
            let root = overridden(&format!("title={text}")).unwrap();
            let Some(Value::String(title)) = root.find("title").map(|node| &node.value) else {
                panic!("{text:?} is a string");
            };
            assert_eq!(title, text);
        }
    }

    #[test]
    fn an_override_sets_one_key() {
        for (text, other) in
            [("seed=7\nreplicates=3", "replicates"), ("seed=7\n[start]\noffset=1", "start")]
        {
            let messages = overridden(text).unwrap_err();
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert!(messages[0].ends_with(&format!("sets `{other}` too")), "{messages:?}");
        }
        let lines = overridden("axis=[\n1,\n2]").unwrap();
        assert!(matches!(lines.find("axis.1").unwrap().value, Value::Integer(2)));
        let quoted = overridden("title=\"\"\"a\nb\"\"\"").unwrap();
        assert!(matches!(&quoted.find("title").unwrap().value, Value::String(t) if t == "a\nb"));
    }
}
