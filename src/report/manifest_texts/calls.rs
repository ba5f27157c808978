//! What texts may contain: prose, and calls with texts and numbers within `{{ … }}`. Other expressions could take any
//! amount of memory. The template engine itself splits the text into tokens, so that both see the same calls.

use super::TextError;
use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// The most characters of an expression, and the most open brackets in it. The template engine
/// reads signs and brackets by recursion, so that thousands of them would overflow the stack.
pub const MOST_CHARACTERS: usize = 1000;
pub const MOST_OPEN: usize = 8;

/// Accepts a text whose expressions are short calls.
///
/// # Errors
/// The first token that belongs to no call, or the limit that an expression exceeds.
pub fn check(text: &str) -> Result<(), TextError> {
    let mut expression = CallExpression { text, begin: 0, open: 0 };
    for token in tokenize(text, false, SyntaxConfig::default()) {
        let (token, span) = token?;
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
    /// Reads the next token of the text, which may begin or end an expression.
    ///
    /// # Errors
    /// If the token belongs to no call, or the expression exceeds a limit with it.
    fn read(&mut self, token: &Token<'_>, span: Span) -> Result<(), TextError> {
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
                    return Err(TextError::TooLong { length, begin: self.beginning() });
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
                return Err(TextError::Statement);
            }
            // A text in quotation marks with an escape, which `Token::Str` does not have.
            Token::String(_) => return Err(TextError::OtherToken { token: "`\\`".to_owned() }),
            other => return Err(TextError::OtherToken { token: other.to_string() }),
        }
        if self.open > MOST_OPEN {
            return Err(TextError::TooDeep { begin: self.beginning() });
        }
        Ok(())
    }

    /// The first 20 characters of the expression, by which an error names it.
    fn beginning(&self) -> String {
        self.text[self.begin..].trim_start().chars().take(20).collect()
    }
}
