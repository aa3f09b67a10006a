-- Counts connections of a random sample by the time since their last refresh.
prepare refreshes as
select refreshed, connections
from sample_refreshes ();
