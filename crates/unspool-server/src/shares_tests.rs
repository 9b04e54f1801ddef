use std::fs;

use unspool_model::id::sha256;

use super::*;

fn share(session: &str, hours: Option<i64>) -> Share {
    let lifetime = hours.map(SignedDuration::from_hours);
    Share::new(SessionId::of("a", session), lifetime, Timestamp::UNIX_EPOCH)
}

fn later(hours: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
}

#[test]
fn a_link_ends_when_it_expires_or_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let shares = ShareStore::in_data_folder(folder.path());
    assert_eq!(shares.list(later(0)).unwrap(), [], "there is no folder yet");
    let (day, forever) = (share("one", Some(24)), share("two", None));
    let (short, long) = (shares.add(&day).unwrap(), shares.add(&forever).unwrap());
    assert_eq!(shares.find(&short, later(23)), Some(day.clone()));
    assert_eq!(shares.find(&short, later(24)), None);
    assert_eq!(shares.find(&long, later(1_000_000)), Some(forever.clone()));
    for other in ["", "x", "../shares", &"0".repeat(48), &sha256(long.as_bytes())] {
        assert_eq!(shares.find(other, later(0)), None, "{other}");
    }
    assert_eq!(
        shares.find(&long.to_uppercase(), later(0)).filter(|_| long != long.to_uppercase()),
        None
    );
    let listed = shares.list(later(24)).unwrap();
    let [(id, listed)] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!(
        (listed, shares.0.files().unwrap().len()),
        (&forever, 1),
        "the expired one is removed"
    );
    assert_eq!((shares.revoke("").unwrap(), shares.revoke("no").unwrap()), (0, 0));
    assert_eq!(shares.revoke(&id[..8]).unwrap(), 1);
    assert_eq!(shares.find(&long, later(0)), None);
}

#[test]
fn links_are_revoked_by_their_token_and_by_their_session() {
    let folder = tempfile::tempdir().unwrap();
    let shares = ShareStore::in_data_folder(folder.path());
    let tokens: Vec<String> =
        ["one", "one", "one", "two"].map(|it| shares.add(&share(it, None)).unwrap()).into();
    assert_eq!(shares.revoke(&tokens[0]).unwrap(), 1);
    assert_eq!(shares.revoke_session(SessionId::of("a", "one")).unwrap(), 2);
    let valid = |token: &String| shares.find(token, later(0)).is_some();
    assert_eq!(tokens.iter().map(valid).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn only_hashes_are_stored_and_only_the_owner_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let shares = ShareStore::in_data_folder(folder.path());
    let token = shares.add(&share("one", None)).unwrap();
    let (_, file) = shares.0.files().unwrap().remove(0);
    assert!(!file.to_string_lossy().contains(&token));
    assert!(!fs::read_to_string(&file).unwrap().contains(&token));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
    }
    // A file that is damaged is no link.
    fs::write(&file, "{}").unwrap();
    assert_eq!(shares.find(&token, later(0)), None);
}
