use super::*;
use crate::auth::client::Browser;

const NETWORK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

fn client(id: &str, history: LoginHistory) -> Client {
    Client { network: NETWORK, browser: Some(Browser { id: id.to_owned(), history }) }
}

fn seconds(admission: Admission) -> Result<u64, u64> {
    match admission {
        Admission::After(wait) => Ok(wait.as_secs()),
        Admission::Refused(wait) => Err(wait.as_secs()),
    }
}

#[test]
fn who_is_wrong_waits_longer_each_time() {
    let senders = [Client { network: NETWORK, browser: None }, client("a", LoginHistory::LoggedIn)];
    for sender in senders {
        let throttle = Throttle::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(throttle.admit(&sender, now), Admission::After(Duration::ZERO));
            // Retried at once: refused.
            let Admission::Refused(wait) = throttle.admit(&sender, now) else { panic!() };
            waits.push(wait.as_secs());
            let half = seconds(throttle.admit(&sender, now + wait / 2));
            assert_eq!(half, Err(wait.as_secs() / 2));
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        // Failures are forgotten after a pause, and by a correct password.
        now += MAX_BACKOFF + FAILURE_MEMORY;
        assert_eq!(seconds(throttle.admit(&sender, now)), Ok(0));
        assert_eq!(seconds(throttle.admit(&sender, now)), Err(1));
        throttle.accept(&sender);
        assert_eq!(seconds(throttle.admit(&sender, now)), Ok(0));
    }
}

#[test]
fn nobody_waits_for_the_failures_of_another_browser_or_network() {
    let throttle = Throttle::default();
    let now = Instant::now();
    let unmarked = Client { network: NETWORK, browser: None };
    for sender in [&unmarked, &client("a", LoginHistory::New)] {
        assert_eq!(seconds(throttle.admit(sender, now)), Ok(0));
        assert_eq!(seconds(throttle.admit(sender, now)), Err(1));
    }
    assert_eq!(seconds(throttle.admit(&client("b", LoginHistory::New), now)), Ok(0));
    assert_eq!(seconds(throttle.admit(&client("c", LoginHistory::LoggedIn), now)), Ok(0));
    let elsewhere = Client { network: "192.0.2.8".parse().unwrap(), browser: None };
    assert_eq!(seconds(throttle.admit(&elsewhere, now)), Ok(0));
}

#[test]
fn many_new_browsers_of_a_network_are_slowed_down() {
    let throttle = Throttle::default();
    let now = Instant::now();
    let attempt = |nth: usize, history| {
        seconds(throttle.admit(&client(&format!("{history:?} {nth}"), history), now))
    };
    let waits: Vec<_> = (0..14).map(|nth| attempt(nth, LoginHistory::New)).collect();
    let verified = [0, 0, 0, 0, 0, 0, 1, 3, 6, 10, 15, 20, 25, 30].map(Ok);
    assert_eq!(waits, verified);
    assert_eq!(attempt(14, LoginHistory::New), Err(35));
    assert_eq!(attempt(15, LoginHistory::New), Err(35), "a refused attempt delays nobody");
    // A browser that has logged in before is verified at once.
    assert_eq!(attempt(0, LoginHistory::LoggedIn), Ok(0));
    let other = Client { network: "192.0.2.8".parse().unwrap(), ..client("z", LoginHistory::New) };
    assert_eq!(seconds(throttle.admit(&other, now)), Ok(0));
}

#[test]
fn a_flood_of_new_browsers_leaves_few_entries() {
    let throttle = Throttle::default();
    let now = Instant::now();
    for nth in 0..1000 {
        throttle.admit(&client(&format!("{nth}"), LoginHistory::New), now);
    }
    assert_eq!(lock(&throttle.failures).len(), 14, "those that were verified");
}
