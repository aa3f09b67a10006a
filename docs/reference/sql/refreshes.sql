-- Counts connections of a random sample by the time since their last refresh.
select refreshed, connections
from sample_refreshes ()
