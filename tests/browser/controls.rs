//! Controls of a figure, the address that holds them, and what each changes in the
//! drawing.

use crate::{end, list, near, number, page, series, shown, titles};
use serde_json::json;

/// Where 400 local steps are: 200 communications at H = 2, 40 at H = 10.
#[test]
fn what_is_across_moves_the_curves() {
    let Some(page) = page() else { return };
    let before = page.picture("curves");
    let (left, right) = (66.0, 466.0);
    near(end(&series(&before, 0)[0]).0, right, 1.0);
    let tenth = |picture: &serde_json::Value| {
        let found = series(picture, 0)
            .iter()
            .find(|s| s["role"] == "measured" && s["label"].as_str().unwrap().ends_with("H = 10"));
        end(found.unwrap()).0
    };
    near(tenth(&before), left + (right - left) / 5.0, 1.0);
    let names = page.ask(
        "[...document.querySelectorAll('#curves select[name=x] option')].map(o => [o.value, o.textContent])",
        json!([]),
    );
    let values: Vec<&str> = list(&names).iter().map(|n| n[0].as_str().unwrap()).collect();
    let costs =
        ["communications", "local-steps", "oracle-calls", "vectors-sent", "bytes", "seconds"];
    assert_eq!(values, costs);
    for (cost, name) in costs.iter().zip(list(&names)).skip(1) {
        page.choose("curves", "x", cost);
        let after = page.picture("curves");
        let texts = list(&after["panels"][0]["texts"]);
        assert!(texts.iter().any(|t| t["words"] == name[1]), "{cost} is named at the axis");
        // The same local steps at either H, a fifth of what is sent; Scaffold sends twice
        // as much.
        let place = match *cost {
            "local-steps" | "oracle-calls" => 1.0,
            "seconds" => 0.2,
            _ => 0.1,
        };
        near(tenth(&after), left + (right - left) * place, 2.0);
        assert_eq!(page.csv("curves")[0][3], *cost);
    }
    // 0.05 s × 200 + 64 bytes × 200 / 1 MB/s + 0.1 ms × 400, as [prices] say.
    let rows = page.csv("curves");
    let plain = |r: &&Vec<String>| r[0] == "N = 2" && r[1] == "FedAvg <b>\"plain\"</b>, H = 2";
    let last = rows.iter().filter(plain).rfind(|r| r[2] == "measured").unwrap();
    near(last[3].parse().unwrap(), 10.0528, 1e-4);
}

#[test]
fn scales_change_ticks_and_places() {
    let Some(page) = page() else { return };
    let words = |picture: &serde_json::Value| -> Vec<String> {
        let texts = list(&picture["panels"][0]["texts"]).iter();
        texts.map(|t| t["words"].as_str().unwrap().to_owned()).collect()
    };
    let before = page.picture("curves");
    assert!(words(&before).contains(&"10⁻²".to_owned()));
    page.choose("curves", "scale-y", "linear");
    let after = page.picture("curves");
    assert!(words(&after).iter().all(|w| !w.contains('⁻')), "{:?}", words(&after));
    let place = |p: &serde_json::Value| end(&series(p, 0)[0]).1;
    // The end of the run is near 0: at the bottom of a linear axis.
    assert!(place(&after) > 255.0 && place(&before) < place(&after));
    page.choose("curves", "scale-y", "log");
    assert_eq!(page.picture("curves"), before);
    page.choose("curves", "scale-x", "log");
    let log = page.picture("curves");
    assert!(words(&log).contains(&"10²".to_owned()) && words(&log).contains(&"10".to_owned()));
    // 40 of 200 lies far to the right on a log axis.
    let found = series(&log, 0).iter().find(|s| s["label"].as_str().unwrap().contains("H = 10"));
    assert!(end(found.unwrap()).0 > 300.0);
}

#[test]
fn bands_are_as_they_are_called() {
    let Some(page) = page() else { return };
    // Of Scaffold at H = 10, whose label needs no quotes: y, low, high at the last round.
    let last = |band: &str| -> Vec<f64> {
        page.choose("points", "band", band);
        let rows = page.csv("points");
        let row = rows.iter().rfind(|r| r[1] == "Scaffold" && r[2] == "measured").unwrap();
        assert_eq!(row[8], band);
        row[4..7].iter().map(|v| v.parse().unwrap_or(f64::NAN)).collect()
    };
    let (sd, ci) = (last("std"), last("ci95"));
    // Student's 97.5 % quantile at 2 degrees of freedom, over √3, of the logarithm.
    let (up, down) = (libm::log(ci[2] / ci[0]), libm::log(ci[0] / ci[1]));
    near(up * ci[0] / (sd[2] - sd[0]), 4.302_653 / 3.0_f64.sqrt(), 1e-3);
    near(up, down, 1e-6);
    near(sd[0] - sd[1], sd[2] - sd[0], 1e-9);
    let quantiles = last("quantiles");
    assert!(quantiles[1] < quantiles[0] && quantiles[0] < quantiles[2]);
    let bands = |picture: &serde_json::Value| {
        let all = list(&picture["panels"]).iter().flat_map(|p| list(&p["series"]));
        all.map(|s| list(&s["bands"]).len()).sum::<usize>()
    };
    assert!(bands(&page.picture("points")) == 4, "two curves in two panels");
    let none = last("none");
    assert!(none[1].is_nan() && none[2].is_nan() && bands(&page.picture("points")) == 0);
    page.choose("curves", "band", "runs");
    let picture = page.picture("curves");
    let runs = |label: &str| {
        let found = series(&picture, 0).iter().find(|s| s["label"] == label).unwrap();
        number(&found["runs"])
    };
    near(runs("Scaffold, H = 2"), 3.0, 0.0);
    assert_eq!(bands(&picture), 0);
    let replicates: Vec<String> = page.csv("curves").iter().flatten().cloned().collect();
    assert!((0..3).all(|i| replicates.contains(&format!("replicate {i}"))));
}

#[test]
fn panels_by_any_axis() {
    let Some(page) = page() else { return };
    assert_eq!(titles(&page.picture("curves")), ["N = 2", "N = 4"]);
    page.choose("curves", "panels", "");
    let one = page.picture("curves");
    assert_eq!(titles(&one), [""]);
    let measured = |p: &serde_json::Value, i: usize| {
        series(p, i).iter().filter(|s| s["role"] == "measured").count()
    };
    assert_eq!(measured(&one, 0), 10, "every cell is a curve of the one panel");
    page.choose("curves", "panels", "local-steps");
    let two = page.picture("curves");
    assert_eq!(titles(&two), ["H = 2", "H = 10"]);
    assert_eq!((measured(&two, 0), measured(&two, 1)), (6, 4));
    assert!(shown(&two, 1).contains(&"Scaffold, N = 4"));
    // A figure without panels may be told apart by both.
    page.choose("one", "panels", "clients");
    assert_eq!(titles(&page.picture("one")), ["N = 2", "N = 4"]);
}

#[test]
fn theory_goes_and_comes() {
    let Some(page) = page() else { return };
    let kinds = |id: &str| -> Vec<(String, bool)> {
        let picture = page.picture(id);
        let all = series(&picture, 0).iter();
        let text = |s: &serde_json::Value| {
            (s["role"].as_str().unwrap().to_owned(), s["shown"] == json!(true))
        };
        all.map(text).collect()
    };
    for id in ["curves", "points"] {
        assert!(kinds(id).iter().all(|(_, shown)| *shown));
        assert!(kinds(id).iter().any(|(role, _)| role != "measured"));
        page.browser.click(&format!("#{id} input[name=theory]"));
        assert!(kinds(id).iter().all(|(role, shown)| *shown == (role == "measured")));
        page.browser.click(&format!("#{id} input[name=theory]"));
        assert!(kinds(id).iter().all(|(_, shown)| *shown));
    }
    assert!(kinds("points").iter().any(|(role, _)| role == "reference"));
}

/// A view is its address: another reader who opens it sees the same.
#[test]
fn an_address_is_a_view() {
    let Some(page) = page() else { return };
    assert_eq!(page.text("location.hash"), "");
    page.choose("curves", "x", "bytes");
    page.choose("curves", "scale-x", "log");
    page.choose("curves", "band", "none");
    page.choose("curves", "panels", "local-steps");
    page.browser.click("#curves .legend li:nth-child(2) button");
    page.browser.click("#points input[name=theory]");
    let (curves, points) = (page.picture("curves"), page.picture("points"));
    let address = page.text("location.hash");
    for part in ["curves.x=bytes", "curves.scale-x=log", "curves.hide=", "points.theory=off"] {
        assert!(address.contains(part), "{address}");
    }
    let Some(other) = crate::Browser::start() else { return };
    other.open(&page.path("browser/page/report.html"), &address);
    let seen = |id: &str| {
        other.run(&format!("{}\nreturn picture(arguments[0])", crate::PROBE), json!([id]))
    };
    assert_eq!((seen("curves"), seen("points")), (curves, points));
    let top = other
        .run("return document.getElementById('curves').getBoundingClientRect().top", json!([]));
    assert!(number(&top).abs() < 50.0, "the figure is scrolled to: {top}");
    page.browser.click("#curves .reset");
    page.browser.click("#points .reset");
    assert_eq!(page.text("location.href").split('#').nth(1), None, "the address is clear");
    // What an address asks for and is not there is passed over.
    page.open("#curves.x=nonsense&curves.band=runs&nobody.x=bytes&curves.hide=nobody");
    assert_eq!(page.picture("curves")["by"], "script");
    assert_eq!(
        page.text("document.querySelector('#curves select[name=x]').value"),
        "communications"
    );
    assert!(page.browser.log("browser").is_empty());
}

/// Cells that were hidden stay hidden when other panels name the curves anew, as the address
/// says.
#[test]
fn hidden_curves_stay_hidden_under_other_panels() {
    let Some(page) = page() else { return };
    page.browser.click("#curves .legend button[data-label=\"Scaffold, H = 10\"]");
    page.choose("curves", "panels", "local-steps");
    let hidden = |picture: &serde_json::Value| -> Vec<String> {
        let panels = list(&picture["panels"]).iter();
        let lines = panels.flat_map(|p| list(&p["series"]).iter().map(move |s| (p, s)));
        let off = lines.filter(|(_, s)| s["shown"] == false && s["role"] == "measured");
        off.map(|(p, s)| format!("{}: {}", p["title"], s["label"]).replace('"', "")).collect()
    };
    let picture = page.picture("curves");
    assert_eq!(hidden(&picture), ["H = 10: Scaffold, N = 2", "H = 10: Scaffold, N = 4"]);
    let address = page.text("location.hash");
    assert!(address.contains("curves.hide=Scaffold"), "{address}");
    // The legend says that the curve is partly hidden; its address brings the same view.
    let pressed = "document.querySelector('#curves .legend button[data-label=\"Scaffold, N = 2\"]').getAttribute('aria-pressed')";
    assert_eq!(page.text(pressed), "mixed");
    page.open(&address);
    assert_eq!(page.picture("curves"), picture);
    page.choose("curves", "panels", "clients");
    let picture = page.picture("curves");
    assert_eq!(hidden(&picture), ["N = 2: Scaffold, H = 10", "N = 4: Scaffold, H = 10"]);
    page.browser.click("#curves .reset");
    assert!(hidden(&page.picture("curves")).is_empty());
}
