//! A PostgreSQL server for the tests: started once for each process that tests, in a temporary
//! folder, on a Unix socket only. It sorts by a language and not by bytes, as many servers do, so
//! that a query which forgets about that is found out.
//!
//! `UNSPOOL_TEST_POSTGRES` names the address of another server to use, without a database. Without
//! PostgreSQL's programs the tests that need it say so and do nothing; with
//! `UNSPOOL_REQUIRE=postgres` they fail.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Starts a server, says so, and ends it when its standard input is closed: with the test, however
/// that ends.
const RUN: &str = r#"
set -e
bin=$1 folder=$2
shift 2
"$bin/initdb" -N -D "$folder/data" -U postgres --auth=trust --encoding=UTF8 \
    --locale-provider=icu --icu-locale=en-US --locale=C.UTF-8 > "$folder/initdb.log" 2>&1 ||
"$bin/initdb" -N -D "$folder/data" -U postgres --auth=trust --encoding=UTF8 > "$folder/initdb.log"
"$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off \
    -c max_connections=300 -c shared_buffers=64MB "$@" < /dev/null > "$folder/log" 2>&1 &
server=$!
for _ in $(seq 600); do
    kill -0 $server
    grep -q ready "$folder/data/postmaster.pid" 2> /dev/null && break
    sleep 0.1
done
echo ready
cat > /dev/null || true
kill -QUIT $server
wait $server || true
rm -rf "$folder"/*
"#;

/// A server that runs as long as this value.
pub struct Server {
    /// Its address, up to the name of the database.
    pub address: String,
    _process: Option<Mutex<Child>>,
}

static SERVER: LazyLock<Option<Server>> = LazyLock::new(start);

/// True if there is a server to test with.
pub fn is_there() -> bool {
    let required = std::env::var("UNSPOOL_REQUIRE").is_ok_and(|names| names.contains("postgres"));
    match &*SERVER {
        Some(_) => true,
        None if required => {
            panic!("UNSPOOL_REQUIRE names postgres, and no server starts here")
        }
        None => {
            eprintln!("left out: no server of PostgreSQL starts here");
            false
        }
    }
}

fn start() -> Option<Server> {
    if let Ok(address) = std::env::var("UNSPOOL_TEST_POSTGRES") {
        return Some(Server { address, _process: None });
    }
    start_with(&[], &[])
}

/// Starts a server with settings, and with files in its folder that only it can read.
pub fn start_with(settings: &[&str], files: &[(&str, &str)]) -> Option<Server> {
    programs().iter().find_map(|programs| start_in(programs, settings, files))
}

/// Starts a server with the programs of a folder. One that does not start here says why.
fn start_in(programs: &Path, settings: &[&str], files: &[(&str, &str)]) -> Option<Server> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("unspool-postgres.{}.{nth}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in files {
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).mode(0o600).open(folder.join(name)).unwrap();
        file.write_all(content.as_bytes()).unwrap();
    }
    // PostgreSQL refuses to run as root.
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let mut command = match is_root {
        true => {
            let owned =
                Command::new("chown").args(["-R", "postgres"]).arg(&folder).status().ok()?;
            if !owned.success() {
                eprintln!("PostgreSQL does not run as root, and there is no user postgres");
                return None;
            }
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "sh"]);
            command
        }
        false => Command::new("sh"),
    };
    let command = command.args(["-c", RUN, "sh"]).arg(programs).arg(&folder).current_dir(&folder);
    command.args(settings.iter().flat_map(|setting| ["-c", *setting]));
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut line = String::new();
    BufReader::new(process.stdout.take()?).read_line(&mut line).ok()?;
    if line != "ready\n" {
        eprintln!("PostgreSQL of {} did not start: see {}", programs.display(), folder.display());
        return None;
    }
    let host = folder.display().to_string().replace('/', "%2F");
    let address = format!("postgres://postgres@{host}");
    Some(Server { address, _process: Some(Mutex::new(process)) })
}

/// The folders with programs of PostgreSQL: of the path, and where Debian has them, newest first.
fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).collect();
    all.extend(folders.into_iter().rev());
    all.retain(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    all
}

/// A database of its own, which is dropped with this.
pub struct TestDatabase {
    name: String,
}

impl TestDatabase {
    /// An empty database.
    pub fn new() -> TestDatabase {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("unspool_{}_{nth}", std::process::id());
        let database = TestDatabase { name };
        execute("postgres", &format!("CREATE DATABASE {}", database.name));
        database
    }

    pub fn address(&self) -> String {
        format!("{}/{}", server_address(), self.name)
    }

    /// Runs statements of PostgreSQL.
    pub fn execute(&self, sql: &str) {
        execute(&self.name, sql);
    }

    /// The first number of the first row.
    pub fn count(&self, sql: &str) -> i64 {
        count(&self.address(), sql)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        execute("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn server_address() -> &'static str {
    &SERVER.as_ref().expect("no PostgreSQL").address
}

/// The first number of the first row.
pub fn count(address: &str, sql: &str) -> i64 {
    run(address, async |client: &tokio_postgres::Client| {
        client.query_one(sql, &[]).await.unwrap().get(0)
    })
}

fn execute(database: &str, sql: &str) {
    run(&format!("{}/{database}", server_address()), async |client: &tokio_postgres::Client| {
        client.batch_execute(sql).await.unwrap();
    });
}

fn run<T>(address: &str, work: impl AsyncFnOnce(&tokio_postgres::Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        client.batch_execute("SET search_path TO unspool, public").await.unwrap();
        let found = work(&client).await;
        drop(client);
        let _ = driver.await;
        found
    })
}
