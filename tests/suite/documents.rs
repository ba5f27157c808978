//! Manifests as values: sections of keys, each with the texts that its value may
//! have, so that a test can write one in any order, change a setting and count
//! the cells that it must have.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A key and the values that it has here: an axis if there are several.
#[derive(Clone, Debug)]
pub struct Line {
    key: &'static str,
    values: Vec<String>,
    /// Another value that is right too; empty where a change means nothing.
    other: &'static str,
    /// What may be written where nothing is.
    default: bool,
}

/// A table with its lines; `[[…]]` for entries of algorithms.
#[derive(Clone, Debug)]
pub struct Section {
    head: String,
    lines: Vec<Line>,
}

impl Section {
    fn is_entry(&self) -> bool {
        self.head.starts_with("[[")
    }

    /// Whether its axes are axes of the grid.
    fn may_vary(&self) -> bool {
        ["[problem", "[budget", "[[algorithm"].iter().any(|head| self.head.starts_with(head))
    }
}

/// A manifest.
#[derive(Clone, Debug)]
pub struct Document {
    top: Vec<Line>,
    sections: Vec<Section>,
    /// Two keys whose axes move together.
    zip: Option<(&'static str, &'static str)>,
}

impl Line {
    fn text(&self) -> String {
        match self.values.as_slice() {
            [one] => format!("{} = {one}", self.key),
            all => format!("{} = [{}]", self.key, all.join(", ")),
        }
    }
}

impl Document {
    /// The manifest as it is.
    pub fn text(&self) -> String {
        let mut out: Vec<String> = self.top.iter().filter(|l| !l.default).map(Line::text).collect();
        out.extend(self.zip.map(|(a, b)| format!("zip = [[\"{a}\", \"{b}\"]]")));
        for section in &self.sections {
            out.push(section.head.clone());
            out.extend(section.lines.iter().filter(|l| !l.default).map(Line::text));
        }
        out.join("\n") + "\n"
    }

    /// The same in another order, with white space, comments, another title,
    /// labels and a figure, and with defaults written out.
    pub fn dressed(&self, shuffle: u64) -> String {
        let mut state = shuffle | 1;
        let mut next = move |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n.max(1)
        };
        let mut mixed = |mut lines: Vec<String>| {
            for i in (1..lines.len()).rev() {
                lines.swap(i, next(i + 1));
            }
            lines
        };
        let dress = |line: String| format!("  {}   # a comment", line.replacen(" = ", "\t=  ", 1));
        let mut top: Vec<String> = self.top.iter().map(Line::text).map(dress).collect();
        top.retain(|line| !line.contains("title"));
        top.push("title = 'another'".into());
        top.push("source = \"\"\"somebody\nelse\"\"\"".into());
        // The names of a zip may come in any order.
        top.extend(self.zip.map(|(a, b)| format!("zip = [ ['{b}',\n '{a}'] ]")));
        let mut sections = Vec::new();
        for (i, section) in self.sections.iter().enumerate() {
            let mut lines: Vec<String> = section.lines.iter().map(Line::text).map(dress).collect();
            if section.is_entry() {
                lines.retain(|line| !line.contains("label"));
                lines.push(format!("label = \"entry {i}\""));
            }
            sections.push(format!("{}\n\n{}", section.head, mixed(lines).join("\n")));
        }
        sections.push("[[figure.convergence]]\nid = \"f\"\ntitle = \"a figure\"".into());
        format!("{}\n{}\n", mixed(top).join("\n"), mixed(sections).join("\n\n"))
    }

    /// One setting changed; its name, and whether every cell must be another.
    pub fn changed(&self, which: &Index) -> (String, &'static str, bool) {
        let mut other = self.clone();
        let everywhere = other.top.iter_mut().map(|line| (true, line));
        let entries = self.sections.iter().filter(|s| s.is_entry()).count();
        let below = other.sections.iter_mut().flat_map(|section| {
            let all = !section.is_entry() || entries == 1;
            section.lines.iter_mut().map(move |line| (all, line))
        });
        let mut lines: Vec<(bool, &mut Line)> =
            everywhere.chain(below).filter(|(_, line)| !line.other.is_empty()).collect();
        let at = which.index(lines.len());
        let (all, line) = &mut lines[at];
        // Where a setting varies, one value of it changes and the rest stays.
        let (whole, key) = (*all && line.values.len() == 1, line.key);
        line.values[0] = line.other.to_owned();
        line.default = false;
        (other.text(), key, whole)
    }

    /// The cells that the manifest must have.
    pub fn cells(&self) -> usize {
        let axes = |section: &Section| -> Vec<(&'static str, usize)> {
            let vary = section.lines.iter().filter(|l| section.may_vary() && !l.default);
            vary.map(|l| (l.key, l.values.len())).filter(|(_, n)| *n > 1).collect()
        };
        let top = self.top.iter().map(|l| (l.key, l.values.len())).filter(|(_, n)| *n > 1);
        let shared: Vec<_> =
            self.sections.iter().filter(|s| !s.is_entry()).flat_map(axes).collect();
        let shared: Vec<_> = top.chain(shared).collect();
        let product = |entry: &Section| -> usize {
            let all: Vec<_> = shared.iter().copied().chain(axes(entry)).collect();
            let has = |key: &str| all.iter().any(|(k, _)| *k == key);
            let together = |key: &str| self.zip.is_some_and(|(a, b)| key == b && has(a) && has(b));
            all.iter().filter(|(key, _)| !together(key)).map(|(_, n)| n).product()
        };
        self.sections.iter().filter(|s| s.is_entry()).map(product).sum()
    }
}

fn line(key: &'static str, values: &[&str], other: &'static str) -> Line {
    let values = values.iter().map(|v| (*v).to_owned()).collect();
    Line { key, values, other, default: false }
}

/// One value.
fn only(key: &'static str, value: &str, other: &'static str) -> BoxedStrategy<Line> {
    Just(line(key, &[value], other)).boxed()
}

/// A default, which need not be written.
fn default(key: &'static str, value: &str) -> BoxedStrategy<Line> {
    Just(Line { default: true, ..line(key, &[value], "") }).boxed()
}

/// One of these sets of values.
fn of(
    key: &'static str,
    choices: &'static [&'static [&'static str]],
    other: &'static str,
) -> BoxedStrategy<Line> {
    select(choices).prop_map(move |values| line(key, values, other)).boxed()
}

fn section(head: &str, lines: Vec<BoxedStrategy<Line>>) -> BoxedStrategy<Section> {
    let head = head.to_owned();
    lines.prop_map(move |lines| Section { head: head.clone(), lines }).boxed()
}

fn problem() -> BoxedStrategy<Section> {
    let spectrum = || {
        of(
            "spectrum",
            &[&["{ from = 0.5, to = 1.0 }"], &["{ from = 1.0, to = 1.0 }"]],
            "{ from = 0.7, to = 0.9 }",
        )
    };
    let clients = || of("clients", &[&["2"], &["3"], &["2", "5"]], "4");
    let dimension = || of("dimension", &[&["1"], &["2"], &["2", "3"]], "4");
    let noise = || of("noise", &[&["0.0"], &["0.5"], &["0.1", "0.2"]], "0.3");
    prop_oneof![
        section("[problem.quadratic]", vec![
            dimension(), clients(), spectrum(), noise(),
            of("gradient-heterogeneity", &[&["0.5"], &["0.5", "1.0"]], "0.7"),
            default("hessian-heterogeneity", "0.0"),
        ]),
        section("[problem.lms]", vec![
            dimension(), clients(), spectrum(), noise(),
            of("covariances", &[&["\"rotated\""], &["\"same\"", "\"rotated\""]], ""),
            default("model-spread", "0.0"),
        ]),
        section("[problem.garnet]", vec![
            of("states", &[&["4"], &["5", "6"]], "7"),
            only("actions", "2", "3"),
            of("branching", &[&["2"], &["3"]], "4"),
            only("features", "2", "1"),
            of("discount", &[&["0.5"], &["0.5", "0.9"]], "0.6"),
            clients(),
            of("heterogeneity", &[&["{ independent = {} }"], &["\"two-kernels\"", "{ perturbed = { kernel = 0.1 } }"]], "{ perturbed = { kernel = 0.2 } }"),
            default("policy", "\"uniform\""),
        ]),
        section("[problem.logistic]", vec![
            dimension(), clients(),
            of("records", &[&["4"], &["6"]], "5"),
            of("data", &[&["{ noisy = { spread = 1.0 } }"], &["{ noisy = { spread = 1.0 } }", "{ heterogeneous = { spread = 1.0, perturbation = 0.5 } }"]], "{ noisy = { spread = 2.0 } }"),
            of("l2", &[&["0.1"], &["0.1", "0.3"]], "0.2"),
            default("batch", "1"),
        ]),
        section("[problem.synthetic]", vec![
            default("alpha", "0.0"),
            default("iid", "false"),
            clients(), dimension(),
            of("classes", &[&["2"], &["2", "3"]], "4"),
            of("records", &[&["{ equal = 4 }"], &["\"power-law\"", "{ equal = 3 }"]], "{ equal = 5 }"),
            of("l2", &[&["0.1"], &["0.1", "0.3"]], "0.2"),
            default("batch", "1"),
        ]),
        section("[problem.mdp]", vec![only("file", "\"data/chains.npz\"", ""), default("noise", "\"independent\"")]),
        section("[problem.least-squares-dataset]", vec![of("dataset", &[&["{ file = \"data/records.csv\", label = \"response\", features = [\"age\", \"dose\"], split = { column = \"site\" }, standardise = true }"]], "{ file = \"data/records.csv\", label = \"response\", features = [\"age\"], split = { column = \"site\" }, standardise = true }")]),
    ]
    .boxed()
}

const OPTIONS: &[&[&str]] = &[&["\"option-one\""], &["\"option-one\"", "\"option-two\""]];
const OVER: &[&[&str]] = &[&["\"fedavg\""], &["\"scaffold\"", "{ fedprox = { proximal = 1.0 } }"]];
const DECAYS: &[&[&str]] = &[&["{ power = 0.5, offset = 3.0 }"]];
const ALONG: &[&[&str]] = &[&["\"step-size\""], &["\"local-steps\""]];
const AVERAGES: &[&[&str]] = &[&["{ burn-in = 0.5 }"], &["\"none\"", "{ burn-in = 0.2 }"]];

fn algorithm() -> BoxedStrategy<Section> {
    let step = || of("step-size", &[&["0.05"], &["0.1", "0.2"], &["100.0"]], "0.07");
    let steps = || of("local-steps", &[&["1"], &["3"], &["1", "4"]], "2");
    let coin = || of("communication-probability", &[&["0.5"], &["0.3", "0.6"]], "0.4");
    let average = || default("average", "\"none\"");
    let decay = || of("decay", DECAYS, "{ power = 1.0, offset = 2.0 }");
    let entry = |kind: &str, label: &'static str, own: Vec<BoxedStrategy<Line>>| {
        // The label is the first line, by which entries are sorted.
        let lines = [vec![only("label", label, ""), step()], own].concat();
        section(&format!("[[algorithm.{kind}]]"), lines)
    };
    let normalised = default("normalised", "false");
    let each = only("steps-per-client", "[1, 3]", "[2, 3]");
    let server = of("server-step", &[&["0.9"], &["0.5", "0.8"]], "0.7");
    let server_of_fednova = server.clone();
    let proximal = of("proximal", &[&["0.0"], &["1.0"]], "2.0");
    let pull = of("proximal", &[&["0.5"], &["0.2", "1.0"]], "0.7");
    let rate = of("server-step", &[&["0.1"], &["0.01", "0.2"]], "0.3");
    let momentum = of("beta2", &[&["0.5"], &["0.9", "0.95"]], "0.8");
    prop_oneof![
        entry("fedavg", "\"a\"", vec![steps(), average(), normalised]),
        entry("fedavg", "\"b\"", vec![each, server, decay()]),
        entry("scaffold", "\"c\"", vec![steps(), of("variates", OPTIONS, "")]),
        entry("scaffold", "\"d\"", vec![coin()]),
        entry(
            "scaffnew",
            "\"e\"",
            vec![only("communication-probability", "0.5", "0.4"), average()]
        ),
        entry("fednova", "\"j\"", vec![only("steps-per-client", "[1, 2]", "[2, 4]"), average()]),
        entry(
            "fednova",
            "\"k\"",
            vec![only("steps-per-client", "[1, 2]", "[2, 4]"), server_of_fednova, pull]
        ),
        entry("fedadagrad", "\"l\"", vec![steps(), average(), default("tau", "0.001")]),
        entry("fedadam", "\"m\"", vec![steps(), rate, default("beta2", "0.99")]),
        entry("fedyogi", "\"n\"", vec![steps(), momentum, default("beta1", "0.9")]),
        entry("fedprox", "\"f\"", vec![steps(), proximal]),
        entry("fedlin", "\"g\"", vec![steps(), average(), decay()]),
        entry("minibatch-sgd", "\"h\"", vec![of("batch", &[&["2"], &["2", "3"]], "4")]),
        entry("richardson-romberg", "\"i\"", extrapolation()),
    ]
    .boxed()
}

fn extrapolation() -> Vec<BoxedStrategy<Line>> {
    vec![
        of("local-steps", &[&["2"], &["2", "3"]], "5"),
        of("over", OVER, "\"minibatch-sgd\""),
        of("extrapolate", ALONG, "\"local-steps-printed\""),
        of("average", AVERAGES, "{ burn-in = 0.3 }"),
        default("points", "2"),
        default("coupling", "\"common\""),
    ]
}

fn rest() -> BoxedStrategy<Vec<Section>> {
    let start = prop_oneof![
        section("[start]", vec![of("offset", &[&["1.0"], &["-0.5"]], "2.0")]),
        section("[start]", vec![only("zero", "true", "")]),
    ];
    let budget = prop_oneof![
        section("[budget]", vec![of("rounds", &[&["1"], &["7"], &["3", "6"]], "9")]),
        section(
            "[budget]",
            vec![of("local-steps", &[&["30"]], "90"), only("min-rounds", "2", ""),]
        ),
    ];
    let record = prop_oneof![
        section(
            "[record]",
            vec![of("every", &[&["1"], &["3"]], "2"), default("iterates", "false")]
        ),
        section(
            "[record]",
            vec![
                of("points", &[&["4"]], "5"),
                of("spacing", &[&["\"log\""], &["\"linear\""]], ""),
                only("iterates", "true", "false"),
            ]
        ),
        section(
            "[record]",
            vec![
                only("metrics", "[\"sq-error-average\", \"sq-gradient\"]", "[\"sq-gradient\"]"),
                only("averages", "[\"bias\", \"covariance\"]", "[\"bias\"]"),
                default("points", "200"),
                default("burn-in", "0.1"),
            ]
        ),
    ];
    (start, budget, record).prop_map(|(a, b, c)| vec![a, b, c]).boxed()
}

/// Any manifest of some problem, one to three algorithms, a grid.
pub fn document() -> impl Strategy<Value = Document> {
    let top = vec![
        only("title", "\"t\"", ""),
        of("seed", &[&["0"], &["7"], &["9223372036854775807"]], "8"),
        of("replicates", &[&["1"], &["3"]], "2"),
        of("oracle", &[&["\"stochastic\""], &["\"exact\""], &["\"stochastic\"", "\"exact\""]], ""),
        default("instance", "\"fixed\""),
    ];
    let zips = [None, Some(("step-size", "local-steps")), Some(("clients", "step-size"))];
    (top, problem(), vec(algorithm(), 1..=3), rest(), select(zips.to_vec())).prop_map(
        |(top, problem, mut entries, rest, zip)| {
            // A label each, or the plan refuses them.
            entries.sort_by(|a, b| a.lines[0].values.cmp(&b.lines[0].values));
            entries.dedup_by(|a, b| a.lines[0].values == b.lines[0].values);
            let mut sections = vec![problem];
            sections.extend(rest);
            sections.extend(entries);
            let mut document = Document { top, sections, zip };
            document.zip = zip.filter(|zip| document.can_zip(zip));
            document
        },
    )
}

impl Document {
    /// Whether both keys are axes somewhere, and of one length everywhere.
    fn can_zip(&self, zip: &(&'static str, &'static str)) -> bool {
        let lengths = |key: &str| -> Vec<usize> {
            let vary = self.sections.iter().filter(|s| s.may_vary() && s.head != "[budget]");
            let lines = vary.flat_map(|s| &s.lines).filter(|l| l.key == key);
            lines.map(|l| l.values.len()).filter(|n| *n > 1).collect()
        };
        let (a, b) = (lengths(zip.0), lengths(zip.1));
        let all: Vec<usize> = [&a[..], &b[..]].concat();
        let budget = self.sections.iter().any(|s| {
            s.head == "[budget]"
                && s.lines.iter().any(|l| l.key == "local-steps" && l.values.len() > 1)
        });
        !a.is_empty() && !b.is_empty() && all.iter().all(|n| *n == all[0]) && !budget
    }
}
