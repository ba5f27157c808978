//! What is wrong with the amendments of a manifest.

use super::kinds::KindTable;
use super::places::Checker;
use crate::manifest::amendment::{AmendedValue, Amendment};
use crate::manifest::claim::ClaimKeys;

/// Notes what is wrong with the amendments, given the claims.
pub fn check_amendments(
    checker: &mut Checker<'_>,
    claims: &[KindTable<ClaimKeys>],
    are_unread: bool,
) {
    let ids: Vec<&str> = claims.iter().map(|claim| claim.common().id.as_str()).collect();
    let ids = (!are_unread).then_some(&ids[..]);
    for (i, amendment) in checker.manifest.amendment.iter().enumerate() {
        checker.amendment(&format!("amendment.{i}"), amendment, ids);
    }
}

impl Checker<'_> {
    fn amendment(&mut self, path: &str, amendment: &Amendment, ids: Option<&[&str]>) {
        let Amendment { setting, claim, from, to, .. } = amendment;
        let says_what = !setting.trim().is_empty();
        let message = "`setting` is empty: it says what was changed, such as \"replicates\"";
        self.require(says_what, &format!("{path}.setting"), message);
        let message = "write `from`, `to` or both: the values before and after the change";
        self.require(from.is_some() || to.is_some(), path, message);
        let message = "`from` and `to` are equal: nothing was changed";
        let is_change = from.is_none() || from != to;
        self.require(is_change, &format!("{path}.to"), message);
        for (key, value) in [("from", from), ("to", to)] {
            let path = format!("{path}.{key}");
            match value {
                Some(AmendedValue::Number(number)) => {
                    let message = format!("`{key}` must be finite, not {number}");
                    self.require(number.is_finite(), &path, message);
                }
                Some(AmendedValue::Text(text)) => {
                    let message = format!("`{key}` is empty: leave it out");
                    self.require(!text.trim().is_empty(), &path, message);
                }
                None => {}
            }
        }
        if let (Some(claim), Some(ids)) = (claim.as_deref(), ids)
            && !ids.contains(&claim)
        {
            let message = format!("no claim has the id \"{claim}\"");
            self.note(&format!("{path}.claim"), message, |d| d.naming(claim, ids));
        }
    }
}
