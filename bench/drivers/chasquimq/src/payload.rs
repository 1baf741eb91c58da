//! Payloads, and the number of the job in them.

use serde_json::{Map, Value};
use uuid::Uuid;

fn chain(depth: u64) -> Value {
    (1..depth).fold(Value::Object(Map::new()), |inner, _| {
        let mut outer = Map::new();
        outer.insert(Uuid::new_v4().to_string(), inner);
        Value::Object(outer)
    })
}

/// Table chasqui: `width` keys, each a chain of `depth` nested objects. Only the number in the first key differs; that key begins
/// with 0 and the others do not, since the map is sorted.
pub struct Trees {
    first: String,
    head: Value,
    tail: Map<String, Value>,
}

impl Trees {
    pub fn new(width: u64, depth: u64) -> Self {
        let key = |digit: &str| format!("{digit}{}", &Uuid::new_v4().to_string()[1..]);
        Trees {
            first: key("0")[..24].to_string(),
            head: chain(depth),
            tail: (1..width).map(|_| (key("f"), chain(depth))).collect(),
        }
    }

    pub fn make(&self, number: u64) -> Value {
        let mut map = self.tail.clone();
        map.insert(format!("{}{number:012x}", self.first), self.head.clone());
        Value::Object(map)
    }
}

fn read(digits: Option<&str>) -> Option<u64> {
    u64::from_str_radix(digits?, 16).ok()
}

pub fn tree_number(data: &Value) -> Option<u64> {
    read(data.as_object()?.keys().next()?.get(24..))
}

/// Tables chronos and idle: {"ts":T,"pad":"NUMBERxxx"}.
pub fn pad(number: u64, ts: u64, size: u64) -> Value {
    let fill = "x".repeat(size.saturating_sub(52) as usize);
    serde_json::json!({"ts": ts, "pad": format!("{number:012x}{fill}")})
}

pub fn pad_number(data: &Value) -> Option<u64> {
    read(data.get("pad")?.as_str()?.get(..12))
}
