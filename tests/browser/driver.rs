//! A browser without a window, driven over WebDriver: plain HTTP on one socket a
//! request, every read with a limit, so that nothing hangs.
//!
//! *Invariant*: the session, the driver and the profile end with the value.

use crate::support::process::{Program, Running};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that a script of a page may take: axe-core needs half a minute for the largest page on
/// a busy machine.
const SCRIPT: Duration = Duration::from_secs(180);
/// The longest wait for an answer of the driver.
const LIMIT: Duration = Duration::from_secs(200);
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Keys, as WebDriver writes those that are no letters.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const SHIFT: &str = "\u{e008}";
pub const ESCAPE: &str = "\u{e00c}";
pub const SPACE: &str = " ";
pub const LEFT: &str = "\u{e012}";
pub const UP: &str = "\u{e013}";
pub const RIGHT: &str = "\u{e014}";
pub const DOWN: &str = "\u{e015}";
pub const END: &str = "\u{e010}";
pub const HOME: &str = "\u{e011}";

pub struct Browser {
    _driver: Running,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// The first of these programs in PATH.
fn program(names: &[&str]) -> PathBuf {
    let folders = std::env::var_os("PATH").expect("a PATH");
    let all = std::env::split_paths(&folders).flat_map(|f| names.iter().map(move |n| f.join(n)));
    all.into_iter().find(|p| p.is_file()).unwrap_or_else(|| panic!("PATH has none of {names:?}"))
}

impl Browser {
    /// A browser with an empty profile.
    pub fn start() -> Self {
        let binary = program(&["chromium", "chromium-browser", "google-chrome"]);
        let driver = program(&["chromedriver"]);
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Program::new(driver).args(["--port=0"]).start();
        let port = driver.wait_for("a port", |driver| port(&driver.out()));
        let mut browser = Self { _driver: driver, port, session: String::new(), _profile: profile };
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            format!("--user-data-dir={}", browser._profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": binary, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": SCRIPT.as_millis() as u64},
        }}});
        let made = browser.send("POST", "/session", Some(&wanted));
        browser.session = made["sessionId"].as_str().expect("a session has an id").to_owned();
        browser.size(1400, 900);
        browser
    }

    /// One request; the value of the answer.
    #[track_caller]
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, value) = self.exchange(method, path, body).unwrap();
        assert_eq!(status, 200, "{method} {path} {body:?}: {value}");
        value
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(u16, Value)> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let (mut line, mut status, mut long) = (String::new(), 0, 0);
        while reader.read_line(&mut line)? > 0 && line != "\r\n" {
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap_or(0);
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                long = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut answer = vec![0; long];
        reader.read_exact(&mut answer)?;
        let mut answer: Value = serde_json::from_slice(&answer)?;
        Ok((status, answer["value"].take()))
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), Some(&body))
    }

    /// Opens a file, at a fragment if there is one.
    #[track_caller]
    pub fn open(&self, page: &Path, fragment: &str) {
        self.post("/url", json!({"url": "about:blank"}));
        self.open_address(&format!("file://{}{fragment}", page.display()));
    }

    #[track_caller]
    pub fn open_address(&self, url: &str) {
        self.post("/url", json!({"url": url}));
    }

    /// Runs a script in the page; the value that it returns.
    #[track_caller]
    pub fn run(&self, script: &str, arguments: Value) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": arguments}))
    }

    /// Runs a script that calls its last argument back.
    #[track_caller]
    pub fn wait(&self, script: &str, arguments: Value) -> Value {
        self.post("/execute/async", json!({"script": script, "args": arguments}))
    }

    /// A command of the browser's own protocol.
    #[track_caller]
    pub fn command(&self, name: &str, values: Value) -> Value {
        self.post("/goog/cdp/execute", json!({"cmd": name, "params": values}))
    }

    #[track_caller]
    pub fn size(&self, wide: u32, high: u32) {
        let values =
            json!({"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", values);
    }

    /// The reader's preference, and the medium: `screen` or `print`.
    #[track_caller]
    pub fn media(&self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", json!({"media": medium, "features": features}));
    }

    #[track_caller]
    fn element(&self, selector: &str) -> String {
        let found = self.post("/element", json!({"using": "css selector", "value": selector}));
        found[ELEMENT].as_str().expect("an element has an id").to_owned()
    }

    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.post(&format!("/element/{}/click", self.element(selector)), json!({}));
    }

    /// Types into an element, which gets the focus.
    #[track_caller]
    pub fn write(&self, selector: &str, text: &str) {
        let path = format!("/element/{}/value", self.element(selector));
        self.post(&path, json!({"text": text}));
    }

    #[track_caller]
    pub fn double_click(&self, selector: &str) {
        let origin = json!({ELEMENT: self.element(selector)});
        let pressed = json!({"type": "pointerDown", "button": 0});
        let released = json!({"type": "pointerUp", "button": 0});
        let to = json!({"type": "pointerMove", "x": 0, "y": 0, "origin": origin});
        self.pointer("mouse", json!([to, pressed, released, pressed, released]));
    }

    /// Moves the pointer to a place in the window.
    #[track_caller]
    pub fn hover(&self, x: f64, y: f64) {
        let to = json!({"type": "pointerMove", "x": x.round(), "y": y.round()});
        self.pointer("mouse", json!([to]));
    }

    #[track_caller]
    pub fn touch(&self, x: f64, y: f64) {
        let to = json!({"type": "pointerMove", "x": x.round(), "y": y.round()});
        let (down, up) = (json!({"type": "pointerDown"}), json!({"type": "pointerUp"}));
        self.pointer("touch", json!([to, down, up]));
    }

    /// Draws the pointer from one place to another with the button held.
    #[track_caller]
    pub fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        let place =
            |(x, y): (f64, f64)| json!({"type": "pointerMove", "x": x.round(), "y": y.round()});
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let pressed = json!({"type": "pointerDown", "button": 0});
        let released = json!({"type": "pointerUp", "button": 0});
        self.pointer("mouse", json!([place(from), pressed, place(middle), place(to), released]));
    }

    #[track_caller]
    fn pointer(&self, kind: &str, steps: Value) {
        let source = json!({"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": steps});
        self.post("/actions", json!({"actions": [source]}));
    }

    /// Presses keys on what has the focus; those before the last are held.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        let down = keys.iter().map(|k| json!({"type": "keyDown", "value": k}));
        let up = keys.iter().rev().map(|k| json!({"type": "keyUp", "value": k}));
        let steps: Vec<Value> = down.chain(up).collect();
        self.post(
            "/actions",
            json!({"actions": [{"type": "key", "id": "keys", "actions": steps}]}),
        );
    }

    /// What a log has since it was last asked: `browser` or `performance`.
    #[track_caller]
    pub fn log(&self, name: &str) -> Vec<Value> {
        let entries = self.post("/se/log", json!({"type": name}));
        entries.as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.exchange("DELETE", &format!("/session/{}", self.session), None);
        }
    }
}

/// The port that the driver says it listens on.
fn port(output: &str) -> Option<u16> {
    let (line, _) = output.split("successfully on port ").nth(1)?.split_once('\n')?;
    line.trim_end().trim_end_matches('.').parse().ok()
}
