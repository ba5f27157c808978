//! Texts are filled from facts, and from nothing else.

use super::facts::{ClaimFacts, PartFacts, TextFacts};
use super::{ENVIRONMENT, TextError, TextFiller, functions};
use crate::evidence::claims::{ClaimPart, Estimate};
use crate::stats::verdict::Verdict;
use exactfed_core::words::readable;
use std::sync::Arc;

/// A text filled from these facts, as [`TextFiller::fill`] returns it.
fn fill(text: &str, facts: TextFacts) -> Result<Option<String>, TextError> {
    TextFiller { environment: &ENVIRONMENT, facts: Arc::new(facts) }.fill(text)
}

/// A text filled from the facts about claims, which are given with their ids; the text must be a template and may be
/// shown.
fn filled(text: &str, claims: impl IntoIterator<Item = (&'static str, ClaimFacts)>) -> String {
    let claims = claims.into_iter().map(|(id, facts)| (id.to_owned(), facts)).collect();
    let facts = TextFacts { claims, ..TextFacts::default() };
    fill(text, facts).expect("a template").expect("no guard fails")
}

#[test]
fn the_reference_of_manifests_lists_every_function() {
    let page = crate::evidence::KINDS.reference();
    for name in functions::NAMES.split(", ") {
        assert!(page.contains(&format!("`{name}(")), "{name}");
    }
}

#[test]
fn parts_of_a_claim() {
    let part = |name: &str, value: f64, verdict| ClaimPart {
        name: name.into(),
        estimate: Estimate { value, interval: (value, value) },
        is_exact: true,
        region: (0.0, 5.0),
        verdict,
    };
    let parts = [
        part("round 1", 1.234, Verdict::Supported),
        part("round 2", 4.155, Verdict::Inconclusive),
        part("round 3", 2.403, Verdict::Supported),
    ];
    let facts = |text| ClaimFacts {
        text,
        weakest: PartFacts { estimate: parts[1].estimate, name: "round 2".into() },
        nearest: PartFacts { estimate: parts[2].estimate, name: "round 3".into() },
        ..ClaimFacts::of_parts(&parts)
    };
    let text = r#"{{ smallest("a") }} to {{ largest("a") }}, {{ supported("a") }}, not at {{ weakest("a") }}"#;
    assert_eq!(filled(text, [("a", facts(readable))]), "1.23 to 4.16, 2 of 3, not at round 2");
    let text =
        r#"{{ estimate("a") }} at {{ nearest("a") }}, {{ number("a") }}; {{ least_certain("a") }}"#;
    assert_eq!(filled(text, [("a", facts(readable))]), "2.40 at round 3, 2.4; 4.16");
    let text = r#"{{ smallest("a") }}, {{ largest("a") }}, {{ supported("a") }}"#;
    assert_eq!(filled(text, [("a", ClaimFacts::of_parts(&[]))]), "–, –, 0 of 0");
    let unknown = fill(r#"{{ largest("b") }}"#, TextFacts::default());
    let message = r#""b" is no claim (allowed: there are none)"#.to_owned();
    assert_eq!(unknown, Err(TextError::Template(message)));
}

#[test]
fn where_results_are_missing_no_call_has_a_value() {
    let filler = TextFiller { environment: &super::WITHOUT_RESULTS, facts: Arc::default() };
    let text = r#"It is {{ value(cell("FedAvg", step_size=0.1), of="bias") }}{{ holds("a") }}."#;
    assert_eq!(filler.fill(text), Ok(Some("It is (no result)(no result).".to_owned())));
}

/// Two texts of one experiment do not share what their guards found.
#[test]
fn a_guard_fails_its_own_text_alone() {
    let claims = [("a".to_owned(), ClaimFacts::of_parts(&[]))].into();
    let facts = Arc::new(TextFacts { claims, ..TextFacts::default() });
    let filler = TextFiller { environment: &ENVIRONMENT, facts };
    assert_eq!(filler.fill(r#"{{ holds("a") }}It holds."#), Ok(None));
    assert_eq!(filler.fill("Nothing is said."), Ok(Some("Nothing is said.".to_owned())));
}
