//! Class weights in a manifest: their forms, what is refused, and the numbers that a run reports.

use super::{Data, manifest};
use crate::support::Bench;

/// Eight records of three clients, three of which have the label yes.
const TABLE: &str =
    "age,site,label\n1,a,no\n2,b,yes\n3,a,no\n4,b,no\n5.5,c,no\n-6,c,yes\n0,a,yes\n1,c,no\n";

/// The table of a problem of this kind on the records, with these class weights; none if the text is empty.
fn problem(kind: &str, weights: &str) -> String {
    let line =
        if weights.is_empty() { String::new() } else { format!("class-weights = {weights}") };
    let dataset = "{ file = \"r.csv\", split = { column = \"site\" }, features = [\"age\"], intercept = true }";
    format!("[problem.{kind}]\nl2 = 0.1\n{line}\ndataset = {dataset}")
}

/// The ids of the cells of a manifest with these class weights, in the order of the grid.
fn ids(kind: &str, weights: &str) -> Vec<String> {
    let data = Data::new(&problem(kind, weights), "r.csv", TABLE.as_bytes());
    let planned = data.bench.run(&["plan", "mine.toml"]).expect(0).out;
    let words = planned.lines().filter(|line| line.contains(" missing ") && line.starts_with(' '));
    words.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// A list and a table are short for the choices `given` and `labels`, and the default is left out of the id of a cell.
/// An array of choices is an axis, as is an array in a table.
#[test]
fn forms_of_class_weights_and_axes() {
    for kind in ["logistic-dataset", "softmax-dataset"] {
        let equal = ids(kind, "");
        assert_eq!(equal.len(), 1);
        assert_eq!(ids(kind, "\"equal\""), equal);
        assert_eq!(ids(kind, "[1.0, 4.0]"), ids(kind, "{ given = [1, 4] }"));
        assert_eq!(ids(kind, "{ yes = 4 }"), ids(kind, "{ labels = { yes = 4.0 } }"));
        let both = ids(kind, "[\"equal\", \"balanced\", { yes = 4, no = 2 }]");
        assert_eq!((both.len(), &both[0]), (3, &equal[0]));
        let axis = ids(kind, "{ yes = [4, 5] }");
        assert_eq!((axis.len(), &axis[0]), (2, &ids(kind, "{ yes = 4 }")[0]));
    }
}

/// The final error of a run is that of the weighted objective: it is the same in all forms of the same weights, and
/// another one without weights.
#[test]
fn runs_of_the_same_weights_are_the_same() {
    for kind in ["logistic-dataset", "softmax-dataset"] {
        let error = |weights: &str| {
            Data::new(&problem(kind, weights), "r.csv", TABLE.as_bytes()).final_errors()
        };
        // Five records are of the class no, and three of the class yes.
        let given = format!("[{}, {}]", 8.0 / (2.0 * 5.0), 8.0 / (2.0 * 3.0));
        let balanced = error("\"balanced\"");
        assert_eq!(error(&given), balanced);
        assert_eq!(error("[1, 1]"), error(""));
        assert_eq!(error("{ yes = 3 }"), error("[1, 3]"));
        assert_ne!(error(""), balanced);
    }
}

#[test]
fn wrong_class_weights_are_named() {
    for (weights, message) in [
        ("[1.0, 0.0]", "`class-weights` must have finite numbers above 0, not 0"),
        ("[1.0, inf]", "`class-weights` must have finite numbers above 0, not inf"),
        ("{ yes = -1 }", "must have finite numbers above 0, not -1 for \"yes\""),
        ("[1, 2, 3]", "has 3 numbers, and r.csv has 2 classes (no, yes); each class needs one"),
        (
            "{ Yes = 2 }",
            "no record of a client has the label \"Yes\"; r.csv has 2 classes (no, yes)",
        ),
        ("{ yes = \"a\" }", "expected a number, not the string \"a\""),
        ("{ labels = {} }", "names no class: write a label with its weight"),
        ("\"labels\"", "`labels` needs a value: write { labels = … }"),
        ("\"balance\"", "unknown name `balance`"),
        ("2.0", "expected one of equal, balanced, given, labels, not 2"),
    ] {
        let data = Data::new(&problem("logistic-dataset", weights), "r.csv", TABLE.as_bytes());
        data.refused(message).warns("mine.toml:7:");
        data.bench.run(&["check", "mine.toml"]).expect(2).warns(message);
        data.bench.run(&["plan", "mine.toml"]).expect(2).warns(message);
    }
}

/// Numbers to fit have no classes.
#[test]
fn regressions_have_no_class_weights() {
    let bench = Bench::new();
    bench.write("mine.toml", manifest(&problem("least-squares-dataset", "\"balanced\"")));
    bench.run(&["check", "mine.toml"]).expect(2).warns("unknown key `class-weights`");
}
