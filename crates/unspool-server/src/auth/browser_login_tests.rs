use std::time::{Duration, SystemTime};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn a_login_ends_when_it_expires_or_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let logins = LoginStore::in_data_folder(folder.path());
    let now = SystemTime::now();
    assert_eq!(logins.remove_all().unwrap(), 0, "there is no folder yet");
    let (one, two) = (logins.add(DAY, now).unwrap(), logins.add(2 * DAY, now).unwrap());
    assert!(logins.is_valid(&one, now) && logins.is_valid(&two, now));
    for other in ["", "x", "../token", &"0".repeat(48), &sha256(one.as_bytes())] {
        assert!(!logins.is_valid(other, now), "{other}");
    }
    // Another server of the same folder, also after a restart.
    assert!(LoginStore::in_data_folder(folder.path()).is_valid(&one, now));
    assert!(!logins.is_valid(&one, now + DAY) && logins.is_valid(&two, now + DAY));
    logins.remove(&two).unwrap();
    logins.remove(&two).unwrap();
    assert!(logins.is_valid(&one, now) && !logins.is_valid(&two, now));
    logins.add(DAY, now + DAY).unwrap();
    assert_eq!(logins.files().unwrap().len(), 1, "the expired one is removed");
    assert_eq!(logins.remove_all().unwrap(), 1);
}

#[test]
fn only_hashes_are_stored_and_only_the_owner_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let logins = LoginStore::in_data_folder(folder.path());
    let cookie = logins.add(DAY, SystemTime::now()).unwrap();
    let file = logins.files().unwrap().remove(0);
    assert!(!file.to_string_lossy().contains(&cookie));
    assert!(!fs::read_to_string(&file).unwrap().contains(&cookie));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&logins.folder)), (0o600, 0o700));
    }
}

#[test]
fn the_number_of_logins_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let logins = LoginStore::in_data_folder(folder.path());
    let now = SystemTime::now();
    let oldest = logins.add(DAY, now).unwrap();
    for nth in 1..MAX_LOGINS {
        fs::write(logins.folder.join(format!("{nth:064}")), (seconds(now) + 99_999).to_string())
            .unwrap();
    }
    let newest = logins.add(DAY, now).unwrap();
    assert!(!logins.is_valid(&oldest, now) && logins.is_valid(&newest, now));
    assert_eq!(logins.files().unwrap().len(), MAX_LOGINS);
}
