//! Static assets of the pages: the style sheet of `unspool-export` and a few small JavaScript
//! modules (`assets/`). File names have no hash, because modules import each other by name;
//! browsers revalidate by ETag.

use std::sync::LazyLock;

use unspool_export::html::{dom, style};
use unspool_model::id::digest;

/// A static file.
pub struct Asset {
    pub name: &'static str,
    pub media_type: &'static str,
    pub content: String,
    /// Digest of the content, used as the `ETag`.
    pub digest: String,
}

macro_rules! modules {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../assets/", $name)))),*] };
}

const MODULES: &[(&str, &str)] = modules![
    "adaptations.js",
    "app.js",
    "ask.js",
    "attention.js",
    "beside.js",
    "changes.js",
    "chat.js",
    "compare.js",
    "complete.js",
    "images.js",
    "cursor.js",
    "edits.js",
    "find.js",
    "findings.js",
    "flow.js",
    "follow.js",
    "list.js",
    "new.js",
    "actions.js",
    "palette.js",
    "prompt_search.js",
    "prompts.js",
    "session.js",
    "share.js",
    "view.js",
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let mut assets = vec![
        asset("style.css", "text/css; charset=utf-8", style::sheet().to_owned()),
        asset("chat.css", "text/css; charset=utf-8", include_str!("../assets/chat.css").to_owned()),
        asset("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()),
        asset(
            "icon-waiting.svg",
            "image/svg+xml",
            include_str!("../assets/icon-waiting.svg").to_owned(),
        ),
        asset("ids.js", SCRIPT, dom::script()),
    ];
    assets.extend(MODULES.iter().map(|(name, text)| asset(name, SCRIPT, (*text).to_owned())));
    assets
});

fn asset(name: &'static str, media_type: &'static str, content: String) -> Asset {
    let digest = format!("\"{:016x}\"", digest(content.as_bytes()));
    Asset { name, media_type, content, digest }
}

/// The asset of this name.
pub fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}
