//! Controls of a figure, the address that holds them, and what each changes in the
//! drawing.

use crate::drawings::settle;
use crate::{Page, end, list, near, number, page, series, shown, titles};
use serde_json::{Value, json};

/// The end of a series, as fractions of the plot area of its panel from the left and the top.
fn end_share(panel: &Value, series: &Value) -> (f64, f64) {
    let area: Vec<f64> = list(&panel["area"]).iter().map(number).collect();
    let (x, y) = end(series);
    ((x - area[0]) / area[2], (y - area[1]) / area[3])
}

/// Where 400 local steps are: 200 communications at H = 2, 40 at H = 10.
#[test]
fn what_is_across_moves_the_curves() {
    let page = page();
    let before = page.picture("curves");
    near(end_share(&before["panels"][0], &series(&before, 0)[0]).0, 1.0, 3e-3);
    let tenth = |picture: &Value| {
        let found = series(picture, 0)
            .iter()
            .find(|s| s["role"] == "measured" && s["label"].as_str().unwrap().ends_with("H = 10"));
        end_share(&picture["panels"][0], found.unwrap()).0
    };
    near(tenth(&before), 0.2, 3e-3);
    let names = page.ask(
        "[...document.querySelectorAll('#curves select[name=x] option')].map(o => [o.value, o.textContent])",
        json!([]),
    );
    let values: Vec<&str> = list(&names).iter().map(|n| n[0].as_str().unwrap()).collect();
    let costs = [
        "communications",
        "local-steps",
        "oracle-calls",
        "gradients",
        "vectors-sent",
        "bytes",
        "seconds",
    ];
    assert_eq!(values, costs);
    for (cost, name) in costs.iter().zip(list(&names)).skip(1) {
        page.choose("curves", "x", cost);
        let after = page.picture("curves");
        let texts = list(&after["panels"][0]["texts"]);
        assert!(texts.iter().any(|t| t["words"] == name[1]), "{cost} is named at the axis");
        // The same local steps at either H, a fifth of what is sent; Scaffold sends as much.
        let place = match *cost {
            "local-steps" | "oracle-calls" | "gradients" => 1.0,
            _ => 0.2,
        };
        near(tenth(&after), place, 5e-3);
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
    let page = page();
    let words = |picture: &Value| -> Vec<String> {
        let texts = list(&picture["panels"][0]["texts"]).iter();
        texts.map(|t| t["words"].as_str().unwrap().to_owned()).collect()
    };
    let before = page.picture("curves");
    assert!(words(&before).contains(&"10⁻²".to_owned()));
    page.choose("curves", "scale-y", "linear");
    let after = page.picture("curves");
    assert!(words(&after).iter().all(|w| !w.contains('⁻')), "{:?}", words(&after));
    let place = |p: &Value| end_share(&p["panels"][0], &series(p, 0)[0]);
    // The end of the run is near 0: at the bottom of a linear axis.
    assert!(place(&after).1 > 0.9 && place(&before).1 < place(&after).1);
    page.choose("curves", "scale-y", "log");
    assert_eq!(page.picture("curves"), before);
    page.choose("curves", "scale-x", "log");
    let log = page.picture("curves");
    assert!(words(&log).contains(&"10²".to_owned()) && words(&log).contains(&"10".to_owned()));
    // 40 of 200 lies far to the right on a log axis.
    let found = series(&log, 0).iter().find(|s| s["label"].as_str().unwrap().contains("H = 10"));
    assert!(end_share(&log["panels"][0], found.unwrap()).0 > 0.6);
}

#[test]
fn bands_are_as_they_are_called() {
    let page = page();
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
    let bands = |picture: &Value| {
        let all = list(&picture["panels"]).iter().flat_map(|p| list(&p["series"]));
        all.map(|s| number(&s["bands"]) as usize).sum::<usize>()
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
    // The caption says what is drawn, and the line above the figure says it whole.
    let caption = || page.text("document.querySelector('#curves figcaption').textContent");
    assert!(caption().contains("; every run") && !caption().contains("interval"));
    for wide in [1400, 390] {
        page.browser.size(wide, 900);
        settle(&page);
        let cut = "(p => p.scrollWidth - p.clientWidth)(document.querySelector('#curves .what'))";
        near(number(&page.ask(cut, json!([]))), 0.0, 0.5);
        assert!(
            page.text("document.querySelector('#curves .what').textContent").contains("every run")
        );
    }
    page.browser.size(1400, 900);
    settle(&page);
    page.choose("curves", "band", "ci95");
    assert!(caption().contains("; band: pointwise 95 % interval"), "{}", caption());
    page.choose("curves", "band", "runs");
    let replicates: Vec<String> = page.csv("curves").iter().flatten().cloned().collect();
    assert!((0..3).all(|i| replicates.contains(&format!("replicate {i}"))));
}

#[test]
fn panels_by_any_axis() {
    let page = page();
    assert_eq!(titles(&page.picture("curves")), ["N = 2", "N = 4"]);
    page.choose("curves", "panels", "");
    let one = page.picture("curves");
    assert_eq!(titles(&one), [""]);
    let measured =
        |p: &Value, i: usize| series(p, i).iter().filter(|s| s["role"] == "measured").count();
    assert_eq!(measured(&one, 0), 10, "every cell is a curve of the one panel");
    page.choose("curves", "panels", "local-steps");
    let two = page.picture("curves");
    assert_eq!(titles(&two), ["H = 2", "H = 10"]);
    assert_eq!((measured(&two, 0), measured(&two, 1)), (6, 4));
    assert!(shown(&two, 1).contains(&"Scaffold, N = 4"));
    // A figure without panels may be distinguished by both.
    page.choose("one", "panels", "clients");
    assert_eq!(titles(&page.picture("one")), ["N = 2", "N = 4"]);
}

#[test]
fn theory_goes_and_comes() {
    let page = page();
    let roles = |id: &str| -> Vec<String> {
        let picture = page.picture(id);
        let all = series(&picture, 0).iter();
        all.map(|s| s["role"].as_str().unwrap().to_owned()).collect()
    };
    for id in ["curves", "points"] {
        let before = roles(id);
        assert!(before.iter().any(|role| role != "measured"));
        page.browser.click(&format!("#{id} input[name=theory]"));
        assert!(roles(id).iter().all(|role| role == "measured"));
        page.browser.click(&format!("#{id} input[name=theory]"));
        assert_eq!(roles(id), before);
    }
    assert!(roles("points").iter().any(|role| role == "reference"));
}

/// The ticks of the y axis and their places, of every panel.
fn ticks_y(picture: &Value) -> Vec<Vec<(String, f64)>> {
    let of = |panel: &Value| {
        let left = number(&panel["area"][0]);
        let texts = list(&panel["texts"]).iter().filter(|t| number(&t["x"]) < left);
        texts.map(|t| (t["words"].as_str().unwrap().to_owned(), number(&t["y"]))).collect()
    };
    list(&picture["panels"]).iter().map(of).collect()
}

#[test]
fn the_range_of_y_is_common_or_own_and_fits_what_is_shown() {
    let page = page();
    let before = page.picture("curves");
    assert_eq!(ticks_y(&before)[0], ticks_y(&before)[1]);
    page.choose("curves", "range", "own");
    let own = page.picture("curves");
    assert_ne!(own, before);
    assert!(page.text("location.hash").contains("curves.range=own"));
    page.browser.click("#curves .reset");
    // With ranges of their own and no bands, the curves fill each panel, whichever are hidden.
    page.choose("curves", "band", "none");
    page.choose("curves", "range", "own");
    let reach = |picture: &Value, panel: usize| {
        let area: Vec<f64> = list(&picture["panels"][panel]["area"]).iter().map(number).collect();
        let points = series(picture, panel).iter().flat_map(|s| list(&s["lines"])).flat_map(list);
        let shares = points.map(|p| (number(&p[1]) - area[1]) / area[3]);
        shares.fold((1.0, 0.0), |(a, b), y| (f64::min(a, y), f64::max(b, y)))
    };
    let before = page.picture("curves");
    for hidden in ["", "Scaffold, H = 2", "Scaffold, H = 10"] {
        if !hidden.is_empty() {
            page.browser.click(&format!("#curves .legend button[data-label=\"{hidden}\"]"));
        }
        for panel in [0, 1] {
            let (high, low) = reach(&page.picture("curves"), panel);
            assert!(high < 0.12 && low > 0.88, "{hidden} {panel}: {high} to {low}");
        }
    }
    assert_ne!(ticks_y(&page.picture("curves")), ticks_y(&before));
}

/// Where fractions of the plot area of the first panel of a figure are in the window.
fn places(page: &Page, id: &str, shares: &[f64]) -> Vec<(f64, f64)> {
    let found = page.ask(
        "(([id, shares]) => { const svg = document.querySelector(`#${id} .plane svg`); svg.scrollIntoView({ block: 'center' }); const box = svg.getBoundingClientRect(), by = box.width / svg.viewBox.baseVal.width, [left, top, wide, high] = svg.querySelector('.panel').dataset.area.split(' ').map(Number); return shares.map(s => [box.left + (left + s * wide) * by, box.top + (top + high / 2) * by]); })(arguments)",
        json!([id, shares]),
    );
    list(&found).iter().map(|p| (number(&p[0]), number(&p[1]))).collect()
}

/// The ends of the stretch of x that the address says a figure shows.
fn zoom(page: &Page) -> Option<(f64, f64)> {
    let hash = page.text("location.hash");
    let (from, to) = hash.split("zoom=").nth(1)?.split('&').next()?.split_once("..")?;
    Some((from.parse().unwrap(), to.parse().unwrap()))
}

#[test]
fn a_stretch_of_x_is_zoomed_to_by_pointer_and_keys() {
    let page = page();
    let before = page.picture("curves");
    let at = places(&page, "curves", &[0.25, 0.5]);
    page.browser.drag(at[0], at[1]);
    let (from, to) = zoom(&page).expect("the address holds the stretch");
    near(from, 50.0, 1.0);
    near(to, 100.0, 1.0);
    let after = page.picture("curves");
    assert_ne!(after, before);
    let what = "document.querySelector('#curves .what').textContent";
    assert!(page.text(what).contains("from "), "{}", page.text(what));
    // The address brings the same stretch to another reader.
    page.open(&page.text("location.hash"));
    assert_eq!(page.picture("curves"), after);
    page.browser.double_click("#curves .plane");
    assert_eq!((zoom(&page), page.picture("curves")), (None, before.clone()));
    // Around the reading position, which the keys keep.
    page.ask("document.querySelector('#curves .plane[tabindex=\"0\"]').focus()", json!([]));
    for key in [crate::driver::HOME, "+"] {
        page.browser.press(&[key]);
    }
    let (from, to) = zoom(&page).expect("a key zooms");
    near(from, 0.0, 1e-6);
    near(to, 100.0, 1.0);
    page.browser.press(&["-"]);
    assert_eq!((zoom(&page), page.picture("curves")), (None, before.clone()));
    for reset in ["0", crate::driver::ESCAPE] {
        page.browser.press(&["+"]);
        assert!(zoom(&page).is_some());
        page.browser.press(&[reset]);
        // The first Escape ends the reading.
        page.browser.press(&[reset]);
        assert_eq!(zoom(&page), None, "{reset:?}");
    }
}

#[test]
fn a_title_enlarges_its_panel() {
    let page = page();
    let wide = |page: &Page| {
        let all = page.ask(
            "[...document.querySelectorAll('#curves .plane')].map(p => p.clientWidth)",
            json!([]),
        );
        list(&all).iter().map(number).collect::<Vec<f64>>()
    };
    let before = wide(&page);
    near(before[0], before[1], 1.0);
    let title = "#curves .cell:nth-child(2) .title";
    page.browser.click(title);
    let after = wide(&page);
    near(after[1] / after[0], 1.9, 0.02);
    assert_eq!(page.picture("curves")["large"], 1);
    assert!(page.text("location.hash").contains("curves.large=2"));
    page.open(&page.text("location.hash"));
    assert_eq!(page.picture("curves")["large"], 1);
    page.browser.click(title);
    assert_eq!((wide(&page), page.text("location.hash")), (before, String::new()));
}

/// A view is its address: another reader who opens it sees the same.
#[test]
fn an_address_is_a_view() {
    let page = page();
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
    let other = crate::Browser::start();
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
    page.open("#curves.x=nonsense&curves.band=runs&nobody.x=bytes&curves.hide=nobody&curves.zoom=9..1&curves.large=77");
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
    let page = page();
    page.browser.click("#curves .legend button[data-label=\"Scaffold, H = 10\"]");
    page.choose("curves", "panels", "local-steps");
    let measured = |picture: &Value| -> Vec<String> {
        let panels = list(&picture["panels"]).iter();
        let lines = panels.flat_map(|p| list(&p["series"]).iter().map(move |s| (p, s)));
        let measured = lines.filter(|(_, s)| s["role"] == "measured");
        let name = |(p, s): (&Value, &Value)| format!("{}: {}", p["title"], s["label"]);
        measured.map(|found| name(found).replace('"', "")).collect()
    };
    let picture = page.picture("curves");
    let hidden = ["H = 10: Scaffold, N = 2", "H = 10: Scaffold, N = 4"].map(str::to_owned);
    let shown = measured(&picture);
    assert!(shown.len() == 8 && hidden.iter().all(|name| !shown.contains(name)), "{shown:?}");
    let address = page.text("location.hash");
    assert!(address.contains("curves.hide=Scaffold"), "{address}");
    // The list says that the curve is partly hidden; its address brings the same view.
    let pressed = "document.querySelector('#curves .legend button[data-label=\"Scaffold, N = 2\"]').getAttribute('aria-pressed')";
    assert_eq!(page.text(pressed), "mixed");
    page.open(&address);
    assert_eq!(page.picture("curves"), picture);
    page.choose("curves", "panels", "clients");
    let shown = measured(&page.picture("curves"));
    let hidden = ["N = 2: Scaffold, H = 10", "N = 4: Scaffold, H = 10"].map(str::to_owned);
    assert!(shown.len() == 8 && hidden.iter().all(|name| !shown.contains(name)), "{shown:?}");
    page.browser.click("#curves .reset");
    assert_eq!(measured(&page.picture("curves")).len(), 10);
}
