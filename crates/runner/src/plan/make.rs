//! From a manifest's text to its plan.

use super::candidates;
use super::cells::cells;
use super::checker::Checker;
use super::figures::{default_figures, figure_ids};
use super::frontier::frontier_problem;
use super::hashes::Hashes;
use super::kinds::{EvidenceKinds, KindTable};
use super::named_files::NamedFiles;
use super::places::{is_written, place_of};
use super::types::Plan;
use super::validate::{check_manifest, with_hints_for_overrides};
use crate::manifest::axis::Choice;
use crate::manifest::document::parse;
use crate::manifest::entries::TreeError;
use crate::manifest::read::read;
use crate::manifest::schema::ManifestSchema;
use crate::manifest::{Diagnostic, Manifest, Node, Rejected, Source};

impl Plan {
    /// Reads a manifest and makes its cells. `experiment` is the name by which results are stored, and `kinds` are the
    /// kinds of claims and figures that the manifest may have. With `[tune]` the cells are those of the candidates, or
    /// of their first runs where candidates race: [`Plan::following`] goes on from there by results.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn new(
        experiment: String,
        source: Source,
        kinds: &'static EvidenceKinds,
    ) -> Result<Self, Rejected> {
        let mut root = parse(&source)?;
        require_problem(&root, &source)?;
        let schema = ManifestSchema::new(kinds.schema(), &source);
        let tuning = candidates::put_tuned_candidates(&mut root, &schema)
            .map_err(|found| Rejected::new(&source, found))?;
        // From here on the tree holds the candidates, so that hints look for keys among them too.
        let reject =
            |found| Rejected::new(&source, with_hints_for_overrides(&root, &source, found));
        let (mut manifest, axes) = read(&root, &schema, tuning.is_some()).map_err(reject)?;
        let figure_tree = std::mem::take(&mut manifest.figure);
        let claim_tree = std::mem::take(&mut manifest.claim);
        let compared_by = manifest.record.default_quantity();
        choose_metric_of_tuning(&mut manifest, &root);
        let reject_table =
            |error: TreeError| reject(vec![Diagnostic::new(None, "", error.to_string())]);
        let mut figure_tables = KindTable::read("figure", kinds.figures, figure_tree, compared_by)
            .map_err(reject_table)?;
        let claim_tables = KindTable::read("claim", kinds.claims, claim_tree, compared_by)
            .map_err(reject_table)?;
        let mut found = check_manifest(&root, &manifest);
        let mut hashes = Hashes::new(&source);
        // What is wrong with the manifest is reported together with what is wrong with its grid.
        let reject_with_found = |more: Vec<Diagnostic>| reject([&found[..], &more].concat());
        let cells = cells(&root, &manifest, &axes, &schema, &mut hashes, None)
            .map_err(reject_with_found)?;
        let frontier_problem =
            frontier_problem(&root, &manifest, &axes, &mut hashes).map_err(reject_with_found)?;
        let named_files = NamedFiles::read(
            claim_tables.iter().filter_map(KindTable::file),
            &mut hashes,
            &root,
            &mut found,
        );
        let mut checker = Checker::new(&root, &manifest, &cells);
        checker.named_files = &named_files;
        checker.check(kinds, &figure_tables, &claim_tables);
        found.extend(checker.found);
        found.extend(hashes.unused(&source));
        if !found.is_empty() {
            return Err(reject(found));
        }
        if !kinds.figures.is_empty() && figure_tables.is_empty() && !cells.is_empty() {
            figure_tables = default_figures(kinds, &cells, tuning.as_ref(), compared_by);
        }
        let figures = figures_in_text(&root, figure_ids(&manifest, &figure_tables));
        let claims = order_in_text(&root, claim_tables.iter().map(|claim| &*claim.path));
        let mut plan = Self {
            experiment,
            source: completed(source, hashes, &manifest),
            manifest,
            kinds,
            figure_tables,
            claim_tables,
            named_files,
            cells,
            frontier_problem,
            figures,
            claims,
            tuning,
        };
        plan.begin_race();
        Ok(plan)
    }
}

/// A source with what reading its manifest has found: hashes and sizes of files, and the definitions of what is defined
/// outside of the program.
fn completed(source: Source, hashes: Hashes, manifest: &Manifest) -> Source {
    Source {
        files: hashes.known,
        sizes: hashes.sizes,
        algorithms: manifest.definitions.clone(),
        problem: manifest.problem().definition().cloned(),
        metrics: manifest.record.own.iter().map(|own| own.known.clone()).collect(),
        ..source
    }
}

/// Checks that the code of the problem of results is registered, without which their manifest cannot be read.
fn require_problem(root: &Node, source: &Source) -> Result<(), Rejected> {
    let Some(problem) = source.problem_without_code() else { return Ok(()) };
    let kind = &problem.kind;
    let path = format!("problem.{kind}");
    let how = if problem.source.is_empty() {
        "read the results with the program that defines it"
    } else {
        "name a file that defines it with --run-code, or read the results in Python where it is defined (results run no code)"
    };
    let message = format!(
        "`{kind}`: the code of this problem is not at hand, or has changed since the experiment was stored: {how}"
    );
    let diagnostic = Diagnostic::new(place_of(root, &path, &Choice::new()), &path, message);
    Err(Rejected::new(source, vec![diagnostic]))
}

/// Gives `[tune]` the metric by which its candidates are compared, if the manifest names none.
fn choose_metric_of_tuning(manifest: &mut Manifest, root: &Node) {
    let at = manifest.tune.as_ref().and_then(|tune| tune.at);
    let metric = manifest.quantity_compared_at(at);
    if let Some(tune) = &mut manifest.tune
        && !is_written(root, "tune.metric")
    {
        tune.metric = metric;
    }
}

/// The ids of figures in the order of a manifest's text. `figures` has the id of each and the path of its table.
fn figures_in_text(root: &Node, figures: Vec<(String, String)>) -> Vec<String> {
    let order = order_in_text(root, figures.iter().map(|(_, path)| path.as_str()));
    order.into_iter().map(|index| figures[index].0.clone()).collect()
}

/// The order in which these paths stand in a manifest's text, as indices into them. Paths that the text does not have,
/// such as that of the default figure, come first.
fn order_in_text<'p>(root: &Node, paths: impl Iterator<Item = &'p str>) -> Vec<usize> {
    let places: Vec<_> = paths.map(|path| place_of(root, path, &Choice::new())).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].cmp(&places[*b]));
    order
}
