//! The documents, the queries and their right answers, which come from a scan of all texts with
//! code that shares nothing with either index.

use std::path::Path;

use rusqlite::Connection;

use crate::Failure;
use crate::text::Variation;

/// Bytes of a document: a typical part.
const DOCUMENT: usize = 2_500;
/// One in this many documents has a paragraph of Chinese.
const CHINESE: usize = 20;

/// Words for the Chinese paragraphs, which are written without spaces.
const CHINESE_WORDS: [&str; 32] = [
    "数据",
    "数据库",
    "索引",
    "搜索",
    "文件",
    "文件夹",
    "会话",
    "消息",
    "工具",
    "调用",
    "结果",
    "错误",
    "错误信息",
    "测试",
    "测试用例",
    "函数",
    "参数",
    "返回值",
    "身份验证",
    "用户",
    "密码",
    "服务器",
    "浏览器",
    "终端",
    "命令行",
    "配置",
    "版本",
    "分支",
    "提交",
    "合并",
    "性能",
    "内存",
];

/// Documents of about `bytes` together. The number of a document is its position.
pub fn documents(bytes: usize) -> Vec<String> {
    let mut variation = Variation::new(11);
    let document = |number: usize| {
        let mut text = variation.document(DOCUMENT);
        if number.is_multiple_of(CHINESE) {
            text.push('\n');
            for _ in 0..12 {
                let random = variation.random() as usize;
                text.push_str(CHINESE_WORDS[random % CHINESE_WORDS.len()]);
                text.push_str(["", "", "的", "，"][random / 64 % 4]);
            }
            text.push('。');
        }
        text
    };
    (0..bytes / DOCUMENT).map(document).collect()
}

/// Stores the texts in a file of their own, for reading the hits of a lookup.
pub fn store_texts(path: &Path, documents: &[String]) -> Result<(), Failure> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = wal; PRAGMA synchronous = normal;
         CREATE TABLE document (row INTEGER PRIMARY KEY, text TEXT NOT NULL);",
    )?;
    let transaction = connection.transaction()?;
    let mut insert = transaction.prepare("INSERT INTO document (row, text) VALUES (?1, ?2)")?;
    for (text, row) in documents.iter().zip(0_i64..) {
        insert.execute((row, text))?;
    }
    drop(insert);
    transaction.commit()?;
    Ok(())
}

pub enum Wanted {
    /// All of these, as whole words.
    Words(Vec<String>),
    /// This exact text, which begins and ends with whole words.
    Phrase(String),
    /// This text inside a word.
    Fragment(String),
}

pub struct Query {
    pub name: &'static str,
    pub wanted: Wanted,
    /// The numbers of the documents that match, in order.
    pub matches: Vec<i64>,
    /// Whether the first hits are the best, as with few matches, or the newest.
    pub ranked: bool,
}

impl Query {
    fn new(name: &'static str, wanted: Wanted) -> Query {
        Query { name, wanted, matches: Vec::new(), ranked: true }
    }

    /// The query as a user types it into the search of the product.
    pub fn typed(&self) -> String {
        match &self.wanted {
            Wanted::Words(words) => words.join(" "),
            Wanted::Phrase(text) | Wanted::Fragment(text) => format!("\"{text}\""),
        }
    }

    fn accepts(&self, lower_case: &str) -> bool {
        match &self.wanted {
            Wanted::Words(wanted) => wanted.iter().all(|wanted| {
                lower_case.split(|it: char| !it.is_alphanumeric()).any(|word| word == wanted)
            }),
            Wanted::Phrase(text) | Wanted::Fragment(text) => lower_case.contains(text.as_str()),
        }
    }
}

/// A generated identifier of the document in the middle.
fn rare_word(documents: &[String]) -> String {
    let text = documents.get(documents.len() / 2).map_or("", |text| text);
    let mut words = text.split(|it: char| !it.is_alphanumeric());
    let rare = words.find(|word| word.len() > 9 && word.contains(|it: char| it.is_ascii_digit()));
    rare.unwrap_or("self").to_lowercase()
}

/// The queries, answered by a scan.
pub fn queries(documents: &[String]) -> Vec<Query> {
    let words = |words: &[&str]| Wanted::Words(words.iter().map(|&it| it.to_owned()).collect());
    let mut queries = vec![
        Query::new("rare word", words(&[&rare_word(documents)])),
        Query::new("common word", words(&["self"])),
        Query::new("two words", words(&["session", "error"])),
        Query::new("phrase", Wanted::Phrase("the recorder lock".to_owned())),
        // The worst case for an index without positions.
        Query::new("common phrase", Wanted::Phrase("at the end of".to_owned())),
        Query::new("fragment", Wanted::Fragment("egmen".to_owned())),
        Query::new("CJK, 2", Wanted::Phrase("索引".to_owned())),
        Query::new("CJK, 4", Wanted::Phrase("身份验证".to_owned())),
    ];
    for (text, row) in documents.iter().zip(0..) {
        let lower_case = text.to_lowercase();
        for query in &mut queries {
            if query.accepts(&lower_case) {
                query.matches.push(row);
            }
        }
    }
    queries
}
