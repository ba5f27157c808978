//! What texts may contain: prose, and calls with texts and numbers within `{{ … }}`. Other
//! expressions could take any amount of memory. The tokens are those of the template engine.

use super::functions::NAMES;
use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// The most characters of an expression, and the most open brackets in it. The template engine
/// reads signs and brackets by recursion, so that thousands of them would overflow the stack.
const MOST_CHARACTERS: usize = 1000;
const MOST_OPEN: usize = 8;

/// Accepts only short calls.
///
/// # Errors
/// The first token that belongs to no call, or which limit an expression exceeds.
pub fn check(text: &str) -> Result<(), String> {
    let mut expression = CallExpression { text, begin: 0, open: 0 };
    for token in tokenize(text, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|e| e.detail().map_or(e.to_string(), str::to_owned))?;
        expression.read(&token, span)?;
    }
    Ok(())
}

/// The expression that is being read.
struct CallExpression<'t> {
    text: &'t str,
    /// Where it begins in the text.
    begin: usize,
    /// The brackets that are open.
    open: usize,
}

impl CallExpression<'_> {
    fn read(&mut self, token: &Token<'_>, span: Span) -> Result<(), String> {
        match token {
            Token::VariableStart => {
                self.begin = span.end_offset as usize;
                self.open = 0;
            }
            Token::ParenOpen => self.open += 1,
            Token::ParenClose => self.open = self.open.saturating_sub(1),
            Token::VariableEnd => {
                let inner = &self.text[self.begin..span.start_offset as usize];
                let length = inner.chars().count();
                if length > MOST_CHARACTERS {
                    return Err(self.exceeds(&format!(
                        "{length} characters; at most {MOST_CHARACTERS} are allowed"
                    )));
                }
            }
            Token::TemplateData(_)
            | Token::Ident(_)
            | Token::Str(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Plus
            | Token::Minus
            | Token::Comma
            | Token::Assign => {}
            Token::BlockStart | Token::BlockEnd => {
                return Err("statements {% … %} are not offered, only {{ … }}".into());
            }
            // A text with an escape.
            Token::String(_) => return Err(not_offered("`\\`")),
            other => return Err(not_offered(&other.to_string())),
        }
        if self.open > MOST_OPEN {
            return Err(self.exceeds(&format!("more than {MOST_OPEN} open brackets")));
        }
        Ok(())
    }

    /// That the expression exceeds a limit, with its beginning.
    fn exceeds(&self, has: &str) -> String {
        let begin: String = self.text[self.begin..].trim_start().chars().take(20).collect();
        format!("an expression has {has}: {{{{ {begin}…")
    }
}

fn not_offered(token: &str) -> String {
    format!("{token} is not offered in {{{{ … }}}}, only calls of {NAMES} with texts and numbers")
}
