//! Reads Rust as far as the checks of layers need it: words without comments and strings,
//! which items are compiled for tests alone, and which paths the others name.
//!
//! *Invariant*: where this reader errs, it takes code of tests for code of the program, and
//! never the other way round.

use std::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// An identifier, `::`, a literal that begins with its quote, or one other character.
    pub text: String,
    pub line: usize,
}

/// A path such as `crate::theory::moments`, or one of the paths of a `use`.
#[derive(Clone, Debug)]
pub struct Named {
    /// From the root of the crate if it begins there, which `super` may do too.
    pub local: bool,
    pub parts: Vec<String>,
    pub line: usize,
}

/// A source file, split into what is compiled for tests alone and the rest.
pub struct Source {
    /// The path of its module: `["theory", "moments"]`.
    pub module: Vec<String>,
    pub code: Vec<Word>,
    pub tests: Vec<Word>,
    /// Modules with files of their own that are compiled for tests alone.
    pub test_modules: Vec<Vec<String>>,
}

impl Source {
    /// The text of a file that is at this path below `src/`.
    pub fn new(file: &Path, text: &str) -> Self {
        let module = module_of(file);
        let mut source = Self { module, code: vec![], tests: vec![], test_modules: vec![] };
        let words = words(text);
        let all: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if all.starts_with(&["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
            source.test_modules.push(source.module.clone());
            source.tests = words;
            return source;
        }
        let (mut i, mut inside) = (0, Inside::new(&source.module));
        while i < all.len() {
            let attribute = if all[i..].starts_with(&["#", "["]) { group(&all, i + 1) } else { i };
            if attribute > i && is_test(&all[i + 2..attribute - 1]) {
                let end = item(&all, attribute);
                if let Some(at) = (attribute..end).find(|at| all[*at] == "mod")
                    && all[end - 1] == ";"
                    && !all[attribute..at].contains(&"{")
                {
                    let own = || [&inside.path[..], &[all[at + 1].to_owned()]].concat();
                    let elsewhere = elsewhere(&all[attribute..at]).map(|name| {
                        // In the same directory, as long as no inline module is around it.
                        module_of(&file.with_file_name(name))
                    });
                    source.test_modules.push(elsewhere.unwrap_or_else(own));
                }
                source.tests.extend_from_slice(&words[i..end]);
                i = end;
            } else {
                inside.pass(&all, i);
                source.code.push(words[i].clone());
                i += 1;
            }
        }
        source
    }

    /// Modules with files of their own that are compiled for more than tests.
    pub fn declared(&self) -> Vec<Vec<String>> {
        let all: Vec<&str> = self.code.iter().map(|word| word.text.as_str()).collect();
        let (mut found, mut inside) = (Vec::new(), Inside::new(&self.module));
        for i in 0..all.len() {
            inside.pass(&all, i);
            if all[i] == "mod" && all.get(i + 2) == Some(&";") {
                found.push([&inside.path[..], &[all[i + 1].to_owned()]].concat());
            }
        }
        found
    }

    /// All paths that the code names, tests apart.
    pub fn paths(&self) -> Vec<Named> {
        paths(&self.code, &self.module)
    }
}

/// The module that a file below `src/` is.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
    let mut module: Vec<String> = parts.collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// The file that one of these attributes says a module is in.
fn elsewhere<'a>(attributes: &[&'a str]) -> Option<&'a str> {
    let found = attributes.windows(3).find(|three| three[..2] == ["path", "="])?;
    found[2].strip_prefix('"')?.strip_suffix('"')
}

/// In which inline module a place is.
struct Inside {
    path: Vec<String>,
    /// How many braces are open around each inline module that is open.
    open: Vec<usize>,
    depth: usize,
}

impl Inside {
    fn new(module: &[String]) -> Self {
        Self { path: module.to_vec(), open: Vec::new(), depth: 0 }
    }

    fn pass(&mut self, all: &[&str], i: usize) {
        match all[i] {
            "{" => {
                if i >= 2 && all[i - 2] == "mod" {
                    self.path.push(all[i - 1].to_owned());
                    self.open.push(self.depth);
                }
                self.depth += 1;
            }
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                if self.open.last() == Some(&self.depth) {
                    self.open.pop();
                    self.path.pop();
                }
            }
            _ => {}
        }
    }
}

/// Whether an attribute asks for tests: `cfg(test)`, or `cfg(all(…, test, …))`.
fn is_test(attribute: &[&str]) -> bool {
    let ["cfg", "(", inner @ .., ")"] = attribute else { return false };
    let ["all", "(", all @ .., ")"] = inner else { return inner == ["test"] };
    let mut depth = 0;
    all.iter().enumerate().any(|(i, word)| {
        depth += i32::from(*word == "(") - i32::from(*word == ")");
        let begins = i == 0 || all[i - 1] == ",";
        let ends = all.get(i + 1).is_none_or(|next| *next == ",");
        depth == 0 && *word == "test" && begins && ends
    })
}

/// The place after the group of brackets that begins here.
fn group(all: &[&str], begin: usize) -> usize {
    let mut depth = 0;
    for (i, word) in all.iter().enumerate().skip(begin) {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    all.len()
}

/// The place after the item, statement or field that begins here, after more attributes.
/// It ends with a semicolon, with its first braces, or before the braces around it;
/// what is no item ends with a comma too.
fn item(all: &[&str], begin: usize) -> usize {
    const ITEMS: [&str; 15] = [
        "mod",
        "fn",
        "struct",
        "enum",
        "impl",
        "use",
        "const",
        "static",
        "type",
        "trait",
        "extern",
        "unsafe",
        "async",
        "macro_rules",
        "let",
    ];
    let mut i = begin;
    while all[i..].starts_with(&["#", "["]) {
        i = group(all, i + 1);
    }
    let mut first = i;
    if all.get(first) == Some(&"pub") {
        first += 1;
        if all.get(first) == Some(&"(") {
            first = group(all, first);
        }
    }
    let is_item = all.get(first).is_some_and(|word| ITEMS.contains(word));
    while i < all.len() {
        match all[i] {
            "{" => return group(all, i),
            "(" | "[" => i = group(all, i),
            ")" | "]" | "}" => return i,
            ";" => return i + 1,
            "," if !is_item => return i + 1,
            _ => i += 1,
        }
    }
    i
}

/// All paths that some words of a module name.
pub fn paths(code: &[Word], module: &[String]) -> Vec<Named> {
    let all: Vec<&str> = code.iter().map(|word| word.text.as_str()).collect();
    let (mut found, mut inside) = (Vec::new(), Inside::new(module));
    let mut i = 0;
    while i < all.len() {
        inside.pass(&all, i);
        let after = if i == 0 { "" } else { all[i - 1] };
        let mut some = Vec::new();
        let begin = i;
        if all[i] == "use" && all.get(i + 1) != Some(&"<") {
            i = tree(&all, i + 1, &[], &mut some);
        } else if is_name(all[i]) && !["::", "."].contains(&after) {
            let mut path = vec![all[i].to_owned()];
            while all.get(i + 1) == Some(&"::") && all.get(i + 2).is_some_and(|w| is_name(w)) {
                path.push(all[i + 2].to_owned());
                i += 2;
            }
            some.push(path);
            i += 1;
        } else {
            i += 1;
        }
        // A name that stands alone is no path.
        let paths = some.into_iter().filter(|path| all[begin] == "use" || path.len() > 1);
        found.extend(paths.map(|path| resolved(path, &inside.path, code[begin].line)));
    }
    found
}

/// The paths of a `use`, from here on; the place after them.
fn tree(all: &[&str], mut i: usize, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    while i < all.len() {
        match all[i] {
            "::" => i += 1,
            "{" => {
                let end = group(all, i) - 1;
                i += 1;
                while i < end {
                    i = tree(all, i, &path, found);
                    i += usize::from(matches!(all.get(i), Some(&("," | ";"))));
                }
                return end + 1;
            }
            "as" => i += 2,
            name if name == "*" || is_name(name) => {
                path.push(name.to_owned());
                i += 1;
            }
            _ => break,
        }
    }
    if path.len() > prefix.len().max(1) && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    found.push(path);
    // Whatever this is, the reader goes on.
    if matches!(all.get(i), Some(&("," | "}" | ";")) | None) { i } else { i + 1 }
}

/// The crates of the workspace: their modules have one set of names.
fn is_own(name: &str) -> bool {
    matches!(name, "crate" | "driftbench" | "driftbench_core" | "driftbench_runner")
}

/// A path from the root of its crate, if it leads to one of the workspace.
fn resolved(path: Vec<String>, module: &[String], line: usize) -> Named {
    let mut base = match path[0].as_str() {
        name if is_own(name) => vec![],
        "self" | "super" => module.to_vec(),
        _ => return Named { local: false, parts: path, line },
    };
    let mut rest = path.as_slice();
    while let [first, more @ ..] = rest {
        match first.as_str() {
            "self" => {}
            name if is_own(name) => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = more;
    }
    base.extend_from_slice(rest);
    Named { local: true, parts: base, line }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words of a text.
pub fn words(text: &str) -> Vec<Word> {
    let letters: Vec<char> = text.chars().collect();
    let (mut all, mut i, mut line) = (Vec::new(), 0, 1);
    while i < letters.len() {
        let end = word(&letters, i);
        let text: String = letters[i..end].iter().collect();
        let skipped = text.starts_with(char::is_whitespace) || is_comment(&letters[i..]);
        if !skipped {
            let name = text.strip_prefix("r#").filter(|_| !text.contains('"'));
            all.push(Word { text: name.unwrap_or(&text).to_owned(), line });
        }
        line += text.matches('\n').count();
        i = end;
    }
    all
}

fn is_comment(letters: &[char]) -> bool {
    letters.starts_with(&['/', '/']) || letters.starts_with(&['/', '*'])
}

/// The place after the word, the comment or the blanks that begin here.
fn word(letters: &[char], begin: usize) -> usize {
    let at = |i: usize| letters.get(i).copied().unwrap_or('\0');
    let name = |mut i: usize| {
        while at(i).is_alphanumeric() || at(i) == '_' {
            i += 1;
        }
        i
    };
    match (at(begin), at(begin + 1)) {
        ('/', '/') => (begin..letters.len()).find(|i| at(*i) == '\n').unwrap_or(letters.len()),
        ('/', '*') => block_comment(letters, begin),
        (':', ':') => begin + 2,
        ('"', _) => quoted(letters, begin + 1, '"'),
        ('\'', '\\') => quoted(letters, begin + 1, '\''),
        ('\'', _) if at(begin + 2) == '\'' => begin + 3,
        ('\'', _) => name(begin + 1).max(begin + 1),
        (first, _) if first.is_alphanumeric() || first == '_' => {
            let end = name(begin);
            let prefix: String = letters[begin..end].iter().collect();
            match (prefix.as_str(), at(end)) {
                ("b" | "c", '"') => quoted(letters, end + 1, '"'),
                ("b", '\'') => quoted(letters, end + 1, '\''),
                ("r" | "br" | "cr", '"' | '#') => raw(letters, end).unwrap_or_else(|| {
                    // `r#type`, a name that is a keyword elsewhere.
                    if at(end) == '#' { name(end + 1) } else { end }
                }),
                _ => end,
            }
        }
        (first, _) if first.is_whitespace() => begin + 1,
        _ => begin + 1,
    }
}

/// The place after a literal whose quote is open here.
fn quoted(letters: &[char], mut i: usize, quote: char) -> usize {
    while i < letters.len() && letters[i] != quote {
        i += if letters[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(letters.len())
}

/// The place after a raw string whose hashes or quote are here, if it is one.
fn raw(letters: &[char], begin: usize) -> Option<usize> {
    let hashes = letters[begin..].iter().take_while(|c| **c == '#').count();
    let mut i = begin + hashes;
    if letters.get(i) != Some(&'"') {
        return None;
    }
    i += 1;
    while i < letters.len() {
        let after = letters[i + 1..].iter().take(hashes).take_while(|c| **c == '#').count();
        if letters[i] == '"' && after == hashes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(i)
}

/// The place after a comment, which may hold others.
fn block_comment(letters: &[char], mut i: usize) -> usize {
    let mut depth = 0;
    while i < letters.len() {
        if letters[i..].starts_with(&['/', '*']) {
            (depth, i) = (depth + 1, i + 2);
        } else if letters[i..].starts_with(&['*', '/']) {
            (depth, i) = (depth - 1, i + 2);
        } else {
            i += 1;
        }
        if depth == 0 {
            break;
        }
    }
    i
}
