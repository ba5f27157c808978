//! Looks at growing numbers of replicates as pages state them.

use crate::evidence::looks::TakenLooks;
use crate::report::claims::ClaimText;
use exactfed_core::words::{count, enumerated, readable};

/// A level in per cent.
fn percent(level: f64) -> String {
    format!("{} %", readable(100.0 * level, 3))
}

/// Sentences for the page of an experiment whose replicates were added in planned looks: at which numbers of replicates
/// and at which levels claims were judged, how many looks were planned, and how many claims each look decided. They
/// begin with "They": on the page the sentence before is about the claims.
pub fn sentence(looks: &TakenLooks) -> String {
    let TakenLooks { planned, taken, decided } = looks;
    let all = planned.all();
    let replicates: Vec<String> = taken.iter().map(|look| look.replicates.to_string()).collect();
    let at = enumerated(&replicates);
    let level_texts: Vec<String> = taken.iter().map(|look| percent(look.level)).collect();
    let levels = enumerated(&level_texts);
    let noun = if taken.len() == 1 { "level" } else { "levels" };
    let judged = format!("They were judged at {at} replicates, at the family-wise {noun} {levels}");
    let plan = match all.len() {
        1 => "This look was planned as the only one".to_owned(),
        looks => format!(
            "At most {looks} looks were planned before the first, up to {} replicates, and the levels of all add up to 5 %, so that replicates may be added until all claims are decided and the probability of a wrong verdict is still at most 5 %",
            planned.most
        ),
    };
    let mut ends = Vec::new();
    for (i, look) in taken.iter().enumerate() {
        let claims = decided.iter().filter(|at| **at == Some(i)).count();
        if claims > 0 {
            let claims_were = format!("{} {}", count(claims, "claim"), was(claims));
            ends.push(format!("{claims_were} decided at {} replicates", look.replicates));
        }
    }
    let open = decided.iter().filter(|at| at.is_none()).count();
    if open > 0 {
        ends.push(format!("{} {} not decided", count(open, "claim"), was(open)));
    }
    format!(
        "{judged}. {plan}. A claim keeps the verdict, the estimate and the p-value of the look that decided it: {}.",
        enumerated(&ends)
    )
}

/// The verb after this number of claims.
fn was(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// Adds to each decided claim a remark on the look that decided it. `claims` are all claims of the experiment, in the
/// order of [`TakenLooks::decided`]. Without planned looks nothing is added.
pub fn add_remarks(looks: Option<&TakenLooks>, claims: &mut [ClaimText]) {
    let Some(TakenLooks { planned, taken, decided }) = looks else { return };
    let planned = planned.all().len();
    for (claim, at) in claims.iter_mut().zip(decided) {
        let Some((at, look)) = at.and_then(|at| Some((at, taken.get(at)?))) else { continue };
        claim.remarks.push(format!(
            "decided at look {} of at most {planned}, at {} replicates, where the family-wise level was {}",
            at + 1,
            look.replicates,
            percent(look.level)
        ));
    }
}
