//! The style sheet of pages and HTML exports.

use std::sync::LazyLock;

use crate::html::block::terminal;

static SHEET: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        include_str!("../../assets/theme.css"),
        include_str!("../../assets/page.css"),
        include_str!("../../assets/transcript.css"),
        include_str!("../../assets/flow.css"),
        &terminal::palette(),
    ];
    parts.concat()
});

pub fn sheet() -> &'static str {
    &SHEET
}
