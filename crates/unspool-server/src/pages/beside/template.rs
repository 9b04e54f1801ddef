//! One line per session, and what it does if it runs.

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_export::html::text::{safe, tone_class};
use unspool_model::summary::Summary;
use unspool_view::present::activity::Activity;
use unspool_view::present::{UNTITLED, format};

use crate::pages::filters::last_segment;

pub struct BesideRow {
    pub summary: Summary,
    /// Grows with the session: a page notes it to know what is unread.
    pub seq: u64,
    pub activity: Option<Activity>,
}

pub fn beside(rows: &[BesideRow], now: Timestamp) -> Markup {
    html! {
        ol {
            @for row in rows {
                @let session = &row.summary.session;
                @let title = row.summary.title.as_deref().unwrap_or(UNTITLED);
                li data-session=(session.id) data-seq=(row.seq) {
                    a href={ "/s/" (session.id) } {
                        span.said { (safe(&format::first_line(title, 120))) }
                        span.unread hidden { "new" }
                        @match &row.activity {
                            Some(activity) => span.doing.(tone_class(activity.tone())) {
                                (activity.glyph(0)) " " (safe(&format::first_line(&activity.sentence(now), 80)))
                            },
                            None => span.doing.dim {
                                (session.agent)
                                @if let Some(project) = &session.facts.project { " · " (safe(last_segment(project))) }
                            },
                        }
                    }
                }
            }
        }
    }
}
