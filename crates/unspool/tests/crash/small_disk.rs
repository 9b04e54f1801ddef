//! Full and read-only disks, as tmpfs mounts in a mount namespace of their own. That requires root;
//! without it the tests print that they are skipped and pass.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::contents::Contents;
use crate::sandbox::{Sandbox, Unspool};

/// A small disk, mounted as long as this lives.
struct SmallDisk {
    holder: Child,
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk of this size. `None` if that is not permitted.
    fn mount(path: &Path, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(path).unwrap();
        // The process keeps the namespace alive until its stdin closes.
        let script = "mount -t tmpfs -o size=$1 unspool-test $0 && echo ready && read end";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(path).arg(size);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().ok()?;
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let disk = SmallDisk { holder, path: path.to_owned() };
        // If it is not ready, dropping it ends the process.
        (said.trim() == "ready").then_some(disk)
    }

    fn remount(&self, options: &str) {
        let mut command = self.enter("mount");
        command.args(["-o", &format!("remount,{options}")]).arg(&self.path);
        assert!(command.status().unwrap().success(), "remount {options}");
    }

    fn enter(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--mount").arg("--target").arg(self.holder.id().to_string()).arg(program);
        command
    }

    /// The program with its archive on this disk.
    fn unspool(&self, sandbox: &Sandbox) -> Unspool {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        sandbox.unspool(name).inside(self.holder.id())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Asserts a one-line error that names the path and the next step.
pub fn assert_refused(output: &Output, about: &Path, next: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("unspool: ") && !said.contains("panicked"), "{said}");
    assert!(said.contains(about.to_str().unwrap()), "it does not name {about:?}: {said}");
    assert!(said.contains(next), "it does not say what to do ({next}): {said}");
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let sandbox = Sandbox::filled();
    let undisturbed = sandbox.unspool("undisturbed");
    undisturbed.sync();
    let expected = Contents::of(&undisturbed);
    // Too small for the database, the WAL index, the schema, the first session, and some of the
    // sessions.
    for size in ["8k", "16k", "40k", "300k", "2m"] {
        let Some(disk) = SmallDisk::mount(&sandbox.path(&format!("disk-{size}")), size) else {
            println!("skipped: no disk can be mounted here");
            return;
        };
        let unspool = disk.unspool(&sandbox);
        let database = unspool.database();
        assert_refused(
            &unspool.run(&["sync"]),
            &database,
            "free some space and run the command again",
        );
        assert_refused(
            &unspool.run(&["sync", "--watch"]),
            &database,
            "free some space and run the command again",
        );
        // Whatever was written can be read.
        let listed = unspool.run(&["list", "--json"]);
        if !listed.status.success() {
            let said = String::from_utf8_lossy(&listed.stderr).into_owned();
            let next = if said.contains("no space") {
                "free some space"
            } else {
                "`unspool sync` creates"
            };
            assert_refused(&listed, &database, next);
        }
        disk.remount("size=256m");
        unspool.sync();
        Contents::of(&unspool).assert_same_as(&expected, &format!("after {size}"));
        assert_eq!(unspool.sync()["records"], 0);
    }
}

#[test]
fn a_disk_that_becomes_full_keeps_what_it_has() {
    // The disk fills up after a successful sync.
    let sandbox = Sandbox::filled();
    let Some(disk) = SmallDisk::mount(&sandbox.path("disk"), "256m") else {
        println!("skipped: no disk can be mounted here");
        return;
    };
    let unspool = disk.unspool(&sandbox);
    unspool.sync();
    let before = Contents::of(&unspool);
    let long = crate::corpus::repeated("odd-output", 30);
    fs::write(sandbox.projects().join("long.jsonl"), long).unwrap();
    let used = unspool.database_size();
    disk.remount(&format!("size={}", used + 200_000));
    let refused = unspool.run(&["sync"]);
    assert_refused(&refused, &unspool.database(), "free some space and run the command again");
    Contents::of(&unspool).assert_same_as(&before, "full");
    let refused = unspool.run(&["db", "vacuum"]);
    assert_refused(&refused, &unspool.database(), "free some space and run the command again");
    Contents::of(&unspool).assert_same_as(&before, "full");
    disk.remount("size=256m");
    unspool.sync();
    let undisturbed = sandbox.unspool("undisturbed");
    undisturbed.sync();
    Contents::of(&unspool).assert_same_as(&Contents::of(&undisturbed), "with room again");
}

/// Commands that write.
const WRITE_COMMANDS: [&[&str]; 6] = [
    &["sync"],
    &["sync", "--watch"],
    &["tag", "vvb4maxr", "x"],
    &["delete", "vvb4maxr", "--yes"],
    &["db", "vacuum"],
    &["db", "rebuild"],
];

#[test]
fn a_disk_that_cannot_be_written_can_be_read() {
    let sandbox = Sandbox::filled();
    let Some(disk) = SmallDisk::mount(&sandbox.path("disk"), "256m") else {
        println!("skipped: no disk can be mounted here");
        return;
    };
    let unspool = disk.unspool(&sandbox);
    disk.remount("ro");
    assert_refused(&unspool.run(&["list"]), &unspool.database(), "`unspool sync` creates it");
    assert_refused(&unspool.run(&["sync"]), unspool.folder().path(), "--data");
    disk.remount("rw");
    unspool.sync();
    let expected = Contents::of(&unspool);
    for left in ["nothing", "its log"] {
        disk.remount("ro");
        Contents::of(&unspool).assert_same_as(&expected, &format!("the recorder left {left}"));
        for command in WRITE_COMMANDS {
            assert_refused(&unspool.run(command), unspool.folder().path(), "--data");
        }
        disk.remount("rw");
        // In the second round a killed recorder has left its write-ahead log behind.
        let watcher = unspool.watch();
        watcher.report();
        watcher.kill();
    }
}

#[test]
fn an_obstructed_path_is_reported() {
    let sandbox = Sandbox::filled();
    // A file where the folder should be.
    let unspool = sandbox.unspool("file");
    fs::write(unspool.folder().path(), "hello").unwrap();
    assert_refused(&unspool.run(&["sync"]), unspool.folder().path(), "--data");
    assert_refused(&unspool.run(&["list"]), &unspool.database(), "`unspool sync` creates it");
    assert_eq!(fs::read_to_string(unspool.folder().path()).unwrap(), "hello");
    // A folder where the file should be.
    let unspool = sandbox.unspool("folder");
    fs::create_dir_all(unspool.database()).unwrap();
    for command in [&["sync"][..], &["list"], &["db", "check"]] {
        assert_refused(&unspool.run(command), &unspool.database(), "--data");
    }
    // A folder where the socket should be: following is impossible, recording works.
    let unspool = sandbox.unspool("socket");
    fs::create_dir_all(unspool.folder().socket().join("x")).unwrap();
    unspool.sync();
}
