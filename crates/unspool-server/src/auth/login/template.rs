//! The login and logout pages. They work without scripts.

use maud::{DOCTYPE, Markup, html};
use unspool_export::html::text::safe;

/// `wrong` is the error of the previous attempt, `to` the redirect target.
pub fn login(wrong: Option<&str>, to: &str) -> Markup {
    let main = html! {
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
    };
    page("Log in", main)
}

pub fn logout() -> Markup {
    let main = html! {
        form action="/logout" method="post" { button type="submit" { "Log out" } }
        p.dim { "Other browsers stay logged in; " code { "unspool serve --revoke-logins" } " ends all logins." }
        p { a href="/" { "Back to the sessions" } }
    };
    page("Log out", main)
}

pub fn logged_out() -> Markup {
    let main = html! {
        p role="status" { "This browser is logged out." }
        p.dim { "To log in again, open the address that " code { "unspool serve" } " printed, or " a href="/" { "log in with the password" } "." }
    };
    page("Logged out", main)
}

fn page(title: &str, main: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                meta name="referrer" content="same-origin";
                title { (title) " · Unspool" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
            }
            body {
                main.login id="main" {
                    h1 { span.mark aria-hidden="true" { "◐" } "Unspool" }
                    (main)
                }
            }
        }
    }
}
