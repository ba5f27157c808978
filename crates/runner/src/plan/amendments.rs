//! What is wrong with the amendments of a manifest.

use super::checker::Checker;
use super::kinds::KindTable;
use crate::manifest::amendment::{AmendedValue, Amendment};
use crate::manifest::claim::ClaimKeys;

impl Checker<'_> {
    /// Notes what is wrong with the amendments. `claims` are those of the manifest, which amendments may name;
    /// `are_unread` says that claims were left unread, so that no name is checked.
    pub fn amendments(&mut self, claims: &[KindTable<ClaimKeys>], are_unread: bool) {
        let ids: Vec<&str> = claims.iter().map(|claim| claim.common().id.as_str()).collect();
        let ids = (!are_unread).then_some(&ids[..]);
        for (i, amendment) in self.manifest.amendment.iter().enumerate() {
            self.table(&format!("amendment.{i}"), |checker| checker.amendment(amendment, ids));
        }
    }

    /// Notes what is wrong with one amendment; `ids` are those of the claims, if they are known.
    fn amendment(&mut self, amendment: &Amendment, ids: Option<&[&str]>) {
        let Amendment { setting, claim, from, to, .. } = amendment;
        let says_what = !setting.trim().is_empty();
        let message = "`setting` is empty: it says what was changed, such as \"replicates\"";
        self.require(says_what, "setting", message);
        let message = "write `from`, `to` or both: the values before and after the change";
        self.require(from.is_some() || to.is_some(), "", message);
        let message = "`from` and `to` are equal: nothing was changed";
        self.require(from.is_none() || from != to, "to", message);
        for (key, value) in [("from", from), ("to", to)] {
            match value {
                Some(AmendedValue::Number(number)) => {
                    let message = format!("`{key}` must be finite, not {number}");
                    self.require(number.is_finite(), key, message);
                }
                Some(AmendedValue::Text(text)) => {
                    let message = format!("`{key}` is empty: leave it out");
                    self.require(!text.trim().is_empty(), key, message);
                }
                None => {}
            }
        }
        if let (Some(claim), Some(ids)) = (claim.as_deref(), ids)
            && !ids.contains(&claim)
        {
            let message = format!("no claim has the id \"{claim}\"");
            self.note("claim", message, |d| d.naming(claim, ids));
        }
    }
}
