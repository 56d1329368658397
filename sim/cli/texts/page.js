document.querySelectorAll('table.sort th').forEach(function(th){
  th.tabIndex=0;
  function sort(){
    var table=th.closest('table'),i=th.cellIndex;
    var up=th.getAttribute('aria-sort')!='ascending';
    var rows=Array.from(table.tBodies[0].rows);
    function key(row){
      var c=row.cells[i],v=c.dataset.v;
      return v===undefined?c.textContent:v===''?Infinity:+v;
    }
    rows.sort(function(a,b){
      var x=key(a),y=key(b);
      return (x<y?-1:x>y?1:0)*(up?1:-1);
    });
    table.querySelectorAll('th').forEach(function(o){
      o.removeAttribute('aria-sort');
    });
    th.setAttribute('aria-sort',up?'ascending':'descending');
    rows.forEach(function(row){table.tBodies[0].append(row);});
  }
  th.addEventListener('click',sort);
  th.addEventListener('keydown',function(e){
    if(e.key=='Enter')sort();
  });
});
addEventListener('beforeprint',function(){
  document.querySelectorAll('details').forEach(function(d){
    d.open=true;
  });
});
document.querySelectorAll('pre.copy').forEach(function(pre){
  pre.title='click to copy';
  pre.addEventListener('click',function(){
    if(navigator.clipboard)navigator.clipboard.writeText(pre.textContent);
  });
});
