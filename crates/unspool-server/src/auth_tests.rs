use super::*;

fn logins() -> LoginStore {
    LoginStore::in_data_folder(std::path::Path::new("/nonexistent"))
}

#[test]
fn only_our_own_names_are_answered() {
    let auth = Auth::new("t".to_owned(), 8123, logins());
    for ours in ["127.0.0.1:8123", "localhost:8123", "[::1]:8123"] {
        assert!(auth.is_allowed_host(ours), "{ours}");
        assert!(auth.is_allowed_origin(&format!("http://{ours}"), ours), "{ours}");
    }
    for other in ["evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:8123", ""] {
        assert!(!auth.is_allowed_host(other), "{other}");
    }
    for other in ["https://127.0.0.1:8123", "null", "http://evil.example"] {
        assert!(!auth.is_allowed_origin(other, "127.0.0.1:8123"), "{other}");
    }
}

#[test]
fn elsewhere_the_names_that_were_given_are_answered_too() {
    let names = vec!["desk.example".to_owned(), "proxy.example:8443".to_owned()];
    let at = |address: &str| {
        let at = SocketAddr::new(address.parse().unwrap(), 8123);
        let access = RemoteAccess {
            names: names.clone(),
            trusted_proxies: Vec::new(),
            password_hash: String::new(),
        };
        Auth::remote("t".to_owned(), at, logins(), access)
    };
    let one = at("192.0.2.5");
    for ours in [
        "127.0.0.1:8123",
        "192.0.2.5:8123",
        "desk.example:8123",
        "DESK.example",
        "proxy.example:8443",
    ] {
        assert!(one.is_allowed_host(ours), "{ours}");
        assert!(one.is_allowed_origin(&format!("http://{ours}"), ours), "{ours}");
    }
    for other in [
        "192.0.2.6:8123",
        "192.0.2.5",
        "192.0.2.5:80",
        "desk.example:80",
        "evil.example:8123",
        "proxy.example",
        "[::1",
        ":8123",
        "a.desk.example",
    ] {
        assert!(!one.is_allowed_host(other), "{other}");
    }
    // Only a proxy terminates TLS, and a proxy has a name.
    assert!(
        one.is_allowed_origin("https://desk.example", "desk.example")
            && !one.is_allowed_origin("https://192.0.2.5:8123", "192.0.2.5:8123")
    );
    assert!(one.address().starts_with("http://192.0.2.5:8123/?token="));
    // 0.0.0.0: any IP address, but no name that was not allowed.
    let all = at("0.0.0.0");
    assert!(all.is_allowed_host("192.0.2.6:8123") && all.is_allowed_host("[2001:db8::1]:8123"));
    assert!(!all.is_allowed_host("evil.example:8123") && !all.is_allowed_host("192.0.2.6:80"));
    // A page of another machine is foreign, also if it is found by its address.
    assert!(all.is_allowed_origin("http://192.0.2.6:8123", "192.0.2.6:8123"));
    for foreign in ["http://192.0.2.7:8123", "http://127.0.0.1:8123", "http://localhost:8123"] {
        assert!(!all.is_allowed_origin(foreign, "192.0.2.6:8123"), "{foreign}");
    }
    assert!(all.is_allowed_origin("http://desk.example:8123", "192.0.2.6:8123"));
    assert!(all.address().starts_with("http://127.0.0.1:8123/?token="));
    assert!(at("2001:db8::5").address().starts_with("http://[2001:db8::5]:8123/?token="));
}

#[test]
fn no_path_leads_to_another_host() {
    for (given, meant) in [
        ("/s/x?a=1", "/s/x?a=1"),
        ("//evil.example/x", "/evil.example/x"),
        ("\\\\evil.example", "/evil.example"),
        ("/\\evil.example", "/evil.example"),
        ("http://evil.example", "/http://evil.example"),
        ("", "/"),
        ("/a\r\nb", "/"),
    ] {
        assert_eq!(local_path(given), meant);
    }
}

#[test]
fn the_token_is_compared_whole() {
    assert!(constant_time_eq("abc", "abc"));
    assert!(
        !constant_time_eq("ab", "abc")
            && !constant_time_eq("abcd", "abc")
            && !constant_time_eq("", "abc")
    );
}
