//! The login page. It works without scripts.

use maud::{DOCTYPE, Markup, html};
use unspool_export::html::text::safe;

/// `wrong` is the error of the previous attempt, `to` the redirect target.
pub fn login(wrong: Option<&str>, to: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                meta name="referrer" content="same-origin";
                title { "Log in · Unspool" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
            }
            body {
                main.login id="main" {
                    h1 { span.mark aria-hidden="true" { "◐" } "Unspool" }
                    form action="/login" method="post" {
                        label {
                            span { "Password" }
                            input type="password" name="password" autocomplete="current-password"
                                required autofocus;
                        }
                        input type="hidden" name="to" value=(safe(to));
                        button type="submit" { "Log in" }
                        @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
                    }
                    p.dim { "The password was set with " code { "unspool serve --set-password" } "." }
                }
            }
        }
    }
}
